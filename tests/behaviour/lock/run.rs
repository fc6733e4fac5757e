//! Scoped use of all guards: whatever becomes of the work, what was acquired is released before the future is done.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bowline::{ErrorKind, Holder, Loss, Result};
use futures::FutureExt;

use super::{free_at_once, waiter};
use crate::support::env::{Env, on_every_server};
use crate::support::polled::polled;

on_every_server! {
    run_gives_the_output_and_has_released,
    run_holds_as_long_as_the_work_whatever_becomes_of_its_guard,
    run_releases_when_the_work_fails_or_panics,
    run_releases_every_kind_of_guard,
    run_does_not_call_the_work_without_the_lock,
    run_stops_the_work_when_the_lease_is_lost,
    run_reports_a_loss_that_the_work_did_not_see,
    run_dropped_half_way_leaves_nothing,
    run_hands_over_to_the_next,
    run_inside_a_hold_of_its_holder_keeps_the_hold,
    a_guard_that_outlives_its_run_keeps_the_hold,
}

/// Says when it is dropped.
struct Flag(Arc<AtomicBool>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

async fn run_gives_the_output_and_has_released(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let lock = client.lock("a");
    let output = lock.lock().run(|guard| {
        let (env, other) = (&env, other.lock("a"));
        async move {
            env.yield_now().await;
            assert!(other.try_lock().await.unwrap().is_none(), "held while the work runs");
            assert!(guard.is_valid());
            guard.token()
        }
    });
    let token = output.await.unwrap();
    assert!(env.keys().is_empty(), "released before it is done: {:?}", env.keys());
    let again = client.lock("a").try_lock().run(async |guard| guard.token()).await.unwrap();
    assert!(again.expect("free") > token);
    assert!(env.keys().is_empty(), "{:?}", env.keys());
}

async fn run_holds_as_long_as_the_work_whatever_becomes_of_its_guard(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let (lock, others) = (client.lock("a"), other.lock("a"));
    // A guard that is not bound to a name is dropped before the work begins.
    lock.lock().run(|_| async { assert!(others.try_lock().await.unwrap().is_none()) }).await.unwrap();
    assert!(env.keys().is_empty());
    let released = lock.lock().run(async |guard| {
        guard.release().await.unwrap();
        assert!(others.try_lock().await.unwrap().is_none());
    });
    released.await.unwrap();
    assert!(env.keys().is_empty());
}

async fn run_releases_when_the_work_fails_or_panics(env: Env) {
    let client = env.client().await;
    let lock = client.lock("a");
    let failed = lock.lock().run(|_| async { "not today".parse::<u8>() }).await.unwrap();
    assert!(failed.is_err());
    assert!(env.keys().is_empty(), "after an error: {:?}", env.keys());

    let in_the_future = lock.lock().run(async |_| {
        env.yield_now().await;
        panic!("on purpose");
    });
    let panic = AssertUnwindSafe(in_the_future).catch_unwind().await.unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"on purpose"));
    assert!(env.keys().is_empty(), "after a panic: {:?}", env.keys());

    let in_the_closure = lock.lock().run(|_| -> std::future::Ready<()> { panic!("at once") });
    assert!(AssertUnwindSafe(in_the_closure).catch_unwind().await.is_err());
    assert!(env.keys().is_empty(), "after a panic of the closure: {:?}", env.keys());
    free_at_once(&env, &lock).await;
}

async fn run_releases_every_kind_of_guard(env: Env) {
    let client = env.client().await;
    let (rw_lock, semaphore) = (client.rw_lock("a"), client.semaphore("a", 3));
    let reading = rw_lock.read().run(async |guard| (guard.name().to_owned(), env.keys().len())).await.unwrap();
    assert!(reading.0 == "a" && reading.1 > 0, "{reading:?}");
    assert!(env.keys().is_empty());
    let writing = rw_lock.try_write().run(async |guard| guard.token()).await.unwrap();
    assert!(writing.expect("free").get() > 0);
    assert!(env.keys().is_empty());
    // A hold that `run` shares cannot be changed.
    let downgraded = rw_lock.write().run(async |guard| {
        let reading = guard.downgrade().await.unwrap();
        assert!(client.rw_lock("a").try_read().await.unwrap().is_none(), "it writes until the end");
        reading.is_valid()
    });
    assert!(downgraded.await.unwrap());
    assert!(env.keys().is_empty());
    let upgraded = rw_lock.upgradable_read().run(async |guard| guard.upgrade().await.unwrap_err().kind());
    assert_eq!(upgraded.await.unwrap(), ErrorKind::WouldDeadlock, "it would wait for the share of `run`");
    assert!(env.keys().is_empty());
    let many = semaphore.acquire_many(2).run(async |permit| (permit.count(), semaphore.available().await.unwrap()));
    assert_eq!(many.await.unwrap(), (2, 1));
    assert_eq!(semaphore.available().await.unwrap(), 3);
}

async fn run_does_not_call_the_work_without_the_lock(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let called = AtomicBool::new(false);
    let held = other.lock("a").lock().await.unwrap();
    let lock = client.lock("a");
    let work = async |_| called.store(true, Ordering::SeqCst);
    assert_eq!(lock.try_lock().run(work).await.unwrap(), None);
    let error = lock.lock().timeout(Duration::from_millis(50)).run(work).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    let error = client.lock("").lock().run(work).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(!called.load(Ordering::SeqCst));
    held.release().await.unwrap();
    free_at_once(&env, &lock).await;
}

async fn run_stops_the_work_when_the_lease_is_lost(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    for revoked in [false, true] {
        let (lock, others) = (client.lock("a"), other.lock("a"));
        let acquire = if revoked { lock.lock() } else { lock.lock().expires_after(Duration::from_millis(200)) };
        let (started, dropped) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (starts, flag) = (started.clone(), Flag(dropped.clone()));
        let run = acquire.run(|_| async move {
            let _flag = flag;
            starts.store(true, Ordering::SeqCst);
            std::future::pending::<()>().await;
        });
        let revoke = async {
            if revoked {
                env.eventually("it works", async || started.load(Ordering::SeqCst)).await;
                others.force_release().await.unwrap().expect("held");
            }
        };
        let (error, ()) = env.soon("the work is stopped", futures::future::join(run, revoke)).await;
        let error = error.unwrap_err();
        assert_eq!((error.kind(), error.operation(), error.name()), (ErrorKind::Lost, "run", Some("a")));
        let loss = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<Loss>());
        assert_eq!(loss, Some(if revoked { &Loss::Revoked } else { &Loss::Expired }));
        assert!(started.load(Ordering::SeqCst) && dropped.load(Ordering::SeqCst));
        free_at_once(&env, &lock).await;
    }
}

/// The work does not await while its lease ends.
async fn run_reports_a_loss_that_the_work_did_not_see(env: Env) {
    let client = env.client().await;
    let lock = client.lock("a");
    let late = lock.lock().expires_after(Duration::from_millis(100)).run(async |guard| {
        while guard.is_valid() {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    assert_eq!(late.await.unwrap_err().kind(), ErrorKind::Lost);
    free_at_once(&env, &lock).await;
}

async fn run_dropped_half_way_leaves_nothing(env: Env) {
    let client = env.client().await;
    let lock = client.lock("a");
    let (mut half_way, mut done) = (0, false);
    for polls in 0..100 {
        let dropped = Arc::new(AtomicBool::new(false));
        let flag = Flag(dropped.clone());
        let run = lock.lock().run(async |_guard| {
            let _flag = flag;
            env.yield_now().await;
            env.yield_now().await;
        });
        done = polled(run, polls, async || {}).await.map(Result::unwrap).is_some();
        half_way += usize::from(polls > 0 && !done);
        assert!(dropped.load(Ordering::SeqCst), "the work is dropped with it");
        free_at_once(&env, &lock).await;
        if done {
            break;
        }
    }
    // At least at each of the two points in the work. The server's answers may be there when they are asked for.
    assert!(done && half_way >= 2, "dropped half way {half_way} times");
}

async fn run_hands_over_to_the_next(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let lock = client.lock("a");
    let (next, token) = lock
        .lock()
        .run(|guard| {
            let (env, other) = (&env, &other);
            async move { (waiter(env, &other.lock("a")).await, guard.token()) }
        })
        .await
        .unwrap();
    let next = env.soon("the next one is served", next).await;
    assert!(next.token() > token);
    next.release().await.unwrap();
}

async fn run_inside_a_hold_of_its_holder_keeps_the_hold(env: Env) {
    let client = env.client().await;
    let (lock, holder) = (client.lock("a"), Holder::new());
    let outer = lock.lock().holder(&holder).await.unwrap();
    let inner = lock.lock().holder(&holder).run(async |guard| (guard.token(), guard.guard_count()));
    assert_eq!(inner.await.unwrap(), (outer.token(), 2));
    assert_eq!(outer.guard_count(), 1);
    assert!(outer.is_valid());
    assert!(lock.try_lock().await.unwrap().is_none(), "the outer guard holds");
    outer.release().await.unwrap();
}

async fn a_guard_that_outlives_its_run_keeps_the_hold(env: Env) {
    let client = env.client().await;
    let lock = client.lock("a");
    let guard = lock.lock().holder(&Holder::new()).run(async |guard| guard).await.unwrap();
    assert!(guard.is_valid());
    assert_eq!(guard.guard_count(), 1);
    assert!(lock.try_lock().await.unwrap().is_none());
    let released: Result<()> = guard.release().await;
    released.unwrap();
    free_at_once(&env, &lock).await;
}
