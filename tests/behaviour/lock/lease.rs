//! Leases: how they end, how they are kept, and how the holder is told.

use std::sync::Arc;
use std::time::Duration;

use bowline::{ErrorKind, Loss};

use super::waiter;
use crate::lab::{Env, Lock, on_every_server};

on_every_server! {
    a_fixed_lease_ends_and_the_next_one_gets_the_lock,
    a_fixed_lease_ends_for_a_holder_that_looks_only_now_and_then,
    a_renewed_lease_outlives_its_length,
    guards_outlive_their_client_and_are_still_renewed,
    what_remains_is_never_more_than_the_lease,
    a_lost_guard_tells_whenever_it_is_asked,
}

async fn a_fixed_lease_ends_and_the_next_one_gets_the_lock(env: Env) {
    let (a, b) = (env.client().await, env.client().await);
    let lease = Duration::from_millis(800);
    let guard = a.lock("a").lock().expires_after(lease).await.unwrap();
    assert!(guard.is_valid());
    let next = waiter(&env, &b.lock("a")).await;
    assert_eq!(env.soon("the loss is told", guard.lost()).await, Loss::Expired);
    assert!(!guard.is_valid());
    assert_eq!(guard.remaining(), Duration::ZERO);
    let next = env.soon("the next one gets it", next).await;
    assert!(next.token() > guard.token());
    let error = guard.release().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert_eq!((error.operation(), error.name()), ("release", Some("a")));
    assert!(std::error::Error::source(&error).unwrap().downcast_ref::<Loss>() == Some(&Loss::Expired));
    // The late release did not release the next holder's lock.
    let state = a.lock("a").inspect().await.unwrap();
    assert_eq!(state.holder.map(|holder| holder.token), Some(next.token()));
    next.release().await.unwrap();
}

async fn a_fixed_lease_ends_for_a_holder_that_looks_only_now_and_then(env: Env) {
    let client = env.client().await;
    let guard = client.lock("a").lock().expires_after(Duration::from_millis(150)).await.unwrap();
    env.eventually("no longer valid", async || !guard.is_valid()).await;
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    // A hold that remained on the server is released in the background.
    let mut guard = None;
    env.eventually("a try is granted", async || {
        guard = client.lock("a").try_lock().expires_after(Duration::from_millis(150)).await.unwrap();
        guard.is_some()
    })
    .await;
    env.soon("the loss of a try's hold is told", guard.unwrap().lost()).await;
}

async fn a_renewed_lease_outlives_its_length(env: Env) {
    let lease = Duration::from_secs(1);
    let client = env.client_with(|config| config.lease(lease)).await;
    let other = env.client().await;
    // A machine that stands still for too long loses its leases and proves nothing, so the test tries several times.
    for _ in 0..10 {
        client.counts.reset();
        if kept(&env, &client.lock("a"), &other.lock("a"), lease * 3 + lease / 5).await {
            // Without renewals, the lease would have ended three times.
            assert!(client.counts.of("lock_renew") >= 3, "{:?}", client.counts.all());
            return;
        }
    }
    panic!("the machine stood still in each of ten tries");
}

/// Holds the lock for so long, and looks all the time. `false` if this task did not run for a third of a second.
async fn kept(env: &Env, lock: &Lock, other: &Lock, duration: Duration) -> bool {
    let guard = lock.lock().await.unwrap();
    let (start, mut looked) = (env.now(), env.now());
    while env.now() - start < duration {
        let seen = (guard.is_valid(), guard.remaining(), other.try_lock().await.unwrap().is_none());
        env.sleep(Duration::from_millis(50)).await;
        if env.now() - std::mem::replace(&mut looked, env.now()) > Duration::from_millis(300) {
            return false;
        }
        assert!(seen.0, "lost after {:?}", env.now() - start);
        assert!(seen.1 <= Duration::from_secs(1));
        assert!(seen.2, "another client got it after {:?}", env.now() - start);
    }
    guard.release().await.unwrap();
    true
}

async fn guards_outlive_their_client_and_are_still_renewed(env: Env) {
    let lease = Duration::from_millis(1500);
    let client = env.client_with(|config| config.lease(lease)).await;
    let counts = client.counts.clone();
    let guard = client.lock("a").lock().await.unwrap();
    drop(client);
    env.eventually("renewals", async || counts.of("lock_renew") >= 3).await;
    assert!(guard.is_valid());
    guard.release().await.unwrap();
    env.eventually("no task is left", async || env.live() == (0, 0)).await;
}

async fn what_remains_is_never_more_than_the_lease(env: Env) {
    let client = env.client().await;
    let default = Duration::from_secs(30);
    for lease in [None, Some(Duration::from_secs(5)), Some(bowline::MAX_LEASE)] {
        let lock = client.lock("a");
        let acquire = match lease {
            Some(lease) => lock.lock().expires_after(lease),
            None => lock.lock(),
        };
        let guard = acquire.await.unwrap();
        let remaining = guard.remaining();
        assert!(remaining > Duration::ZERO && remaining <= lease.unwrap_or(default), "{lease:?}: {remaining:?}");
        let server = lock.inspect().await.unwrap().holder.unwrap().remaining;
        assert!(guard.remaining() <= server + Duration::from_millis(1), "the client trusts the lease for longer");
        guard.release().await.unwrap();
    }
}

async fn a_lost_guard_tells_whenever_it_is_asked(env: Env) {
    let client = env.client().await;
    let guard = Arc::new(client.lock("a").lock().expires_after(Duration::from_millis(200)).await.unwrap());
    let watchers: Vec<_> = (0..3)
        .map(|_| {
            let guard = guard.clone();
            env.spawn(async move { guard.lost().await })
        })
        .collect();
    // A future of `lost` that is dropped before the loss does no harm.
    assert!(crate::support::polled::poll_once(&mut Box::pin(guard.lost())).await.is_none());
    for watcher in watchers {
        assert_eq!(env.soon("told", watcher).await, Loss::Expired);
    }
    assert_eq!(guard.lost().await, Loss::Expired);
    assert_eq!(guard.lost().await, Loss::Expired);
}
