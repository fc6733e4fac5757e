//! Work that is stopped when the lease is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bowline::ErrorKind;

use crate::support::env::{Env, on_every_server};

on_every_server! {
    protect_gives_the_output_of_the_work,
    protect_drops_the_work_when_the_lease_is_lost,
}

/// Says when it is dropped.
struct Flag(Arc<AtomicBool>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

async fn protect_gives_the_output_of_the_work(env: Env) {
    let client = env.client().await;
    let guard = client.lock("a").lock().await.unwrap();
    let output = guard.protect(async {
        env.yield_now().await;
        7
    });
    assert_eq!(output.await.unwrap(), 7);
    assert!(guard.is_valid());
    guard.release().await.unwrap();
}

async fn protect_drops_the_work_when_the_lease_is_lost(env: Env) {
    let client = env.client().await;
    let guard = client.lock("a").lock().expires_after(Duration::from_millis(200)).await.unwrap();
    let (started, dropped) = (AtomicBool::new(false), Arc::new(AtomicBool::new(false)));
    let flag = Flag(dropped.clone());
    let work = async {
        let _flag = flag;
        started.store(true, Ordering::SeqCst);
        std::future::pending::<()>().await;
    };
    let error = env.soon("the work is stopped", guard.protect(work)).await.unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Lost, "protect"));
    assert!(started.load(Ordering::SeqCst) && dropped.load(Ordering::SeqCst));
    // The lease is already over, so the work does not begin.
    started.store(false, Ordering::SeqCst);
    let error = guard.protect(async { started.store(true, Ordering::SeqCst) }).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(!started.load(Ordering::SeqCst));
}
