//! Work under several holds, and generic code over all guards.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bowline::{ErrorKind, Held, Holder, Loss, Result};
use futures::FutureExt;

use crate::support::env::{Env, on_every_server};

on_every_server! {
    run_holds_all_and_has_released_them,
    work_is_stopped_by_the_loss_of_one,
    generic_code_takes_a_guard_of_several,
    a_scope_makes_the_holder_ambient,
}

/// Says when it is dropped.
struct Flag(Arc<AtomicBool>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

async fn run_holds_all_and_has_released_them(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let all = client.lock_all(["a", "b"]);
    let tokens = all.acquire().run(|guard| {
        let others = other.lock_all(["b"]);
        async move {
            assert!(others.try_acquire().await.unwrap().is_none(), "held while the work runs");
            guard.tokens().map(|(_, token)| token).collect::<Vec<_>>()
        }
    });
    assert_eq!(tokens.await.unwrap().len(), 2);
    assert!(env.keys().is_empty(), "released before it is done: {:?}", env.keys());
    assert_eq!(all.try_acquire().run(async |guard| guard.names().count()).await.unwrap(), Some(2));
    assert!(env.keys().is_empty(), "{:?}", env.keys());
    let panics = std::panic::AssertUnwindSafe(all.acquire().run(async |_guard| panic!("on purpose"))).catch_unwind();
    assert!(panics.await.is_err());
    assert!(env.keys().is_empty(), "{:?}", env.keys());
}

async fn work_is_stopped_by_the_loss_of_one(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let dropped = Arc::new(AtomicBool::new(false));
    let (flag, lock) = (Flag(dropped.clone()), other.lock("b"));
    let work = async move |_guard| {
        let _flag = flag;
        lock.force_release().await.unwrap();
        std::future::pending::<()>().await;
    };
    let run = client.lock_all(["a", "b", "c"]).acquire().run(work);
    let error = env.soon("the work is stopped", run).await.unwrap_err();
    assert_eq!((error.kind(), error.operation(), error.name()), (ErrorKind::Lost, "run", Some("b")));
    assert!(dropped.load(Ordering::SeqCst));
    assert!(env.keys().is_empty(), "{:?}", env.keys());
}

async fn generic_code_takes_a_guard_of_several(env: Env) {
    async fn work<G: Held>(guard: G) -> Result<(String, Option<Loss>)> {
        assert!(guard.is_valid() && !guard.remaining().is_zero());
        guard.protect(async {}).await?;
        let signal = guard.lost_signal();
        let lost = guard.lost().now_or_never().map(Into::into);
        let name = guard.name().to_owned();
        guard.release().await?;
        assert_eq!(signal.wait().await, None);
        Ok((name, lost))
    }
    let client = env.client().await;
    let guard = client.lock_all(["b", "a"]).acquire().await.unwrap();
    assert_eq!(work(guard).await.unwrap(), ("a, b".to_owned(), None));
    assert_eq!(work(client.lock("a").lock().await.unwrap()).await.unwrap(), ("a".to_owned(), None));
}

async fn a_scope_makes_the_holder_ambient(env: Env) {
    let client = env.client().await;
    let (lock, all) = (client.lock("b"), client.lock_all(["a", "b"]));
    let holder = Holder::new();
    let scoped = holder.scope(async {
        let outer = lock.lock().await.unwrap();
        let guard = all.acquire().await.unwrap();
        assert_eq!(guard.token("b"), Some(outer.token()));
        guard.release().await.unwrap();
        outer.release().await.unwrap();
    });
    env.soon("it re-enters", scoped).await;
}
