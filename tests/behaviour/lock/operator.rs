//! Looking at a lock from outside, and taking it away.

use std::time::Duration;

use bowline::{ErrorKind, Loss};

use super::{LONG, wait_once, waiter};
use crate::lab::{Env, on_every_server};

on_every_server! {
    inspect_shows_the_holder_and_those_who_wait,
    inspect_counts_a_cohort_as_one_ticket_or_none,
    force_release_tells_the_holder_and_serves_the_next,
    force_release_of_a_free_lock_is_nothing,
}

async fn inspect_shows_the_holder_and_those_who_wait(env: Env) {
    let (a, b) = (env.client().await, env.client().await);
    let lock = b.lock("a");
    let state = lock.inspect().await.unwrap();
    assert!(state.holder.is_none());
    assert_eq!(state.waiters, 0);
    wait_once(&env, &a.lock("a"), &lock).await;
    let lease = Duration::from_secs(12);
    let guard = a.lock("a").lock().expires_after(lease).await.unwrap();
    let one = waiter(&env, &b.lock("a")).await;
    let two = waiter(&env, &a.lock("a")).await;
    let state = lock.inspect().await.unwrap();
    let holder = state.holder.unwrap();
    assert_eq!((holder.client, holder.token), (Some(a.id()), guard.token()));
    assert!(holder.remaining > Duration::ZERO && holder.remaining <= lease, "{:?}", holder.remaining);
    assert_eq!(state.waiters, 2);
    guard.release().await.unwrap();
    let one = env.soon("one", one).await;
    let state = lock.inspect().await.unwrap();
    assert_eq!((state.holder.unwrap().client, state.waiters), (Some(b.id()), 1));
    one.release().await.unwrap();
    env.soon("two", two).await.release().await.unwrap();
    let state = lock.inspect().await.unwrap();
    assert_eq!((state.holder.is_none(), state.waiters), (true, 0));
}

async fn inspect_counts_a_cohort_as_one_ticket_or_none(env: Env) {
    // Far longer than the test, so that the hold would stay in the cohort.
    let (a, b) = (env.client_with(|config| config.handoff_time(Duration::from_secs(10))).await, env.client().await);
    let lock = b.lock("a");
    let fair = b.lock("a").lock().await.unwrap();
    let line: Vec<_> = (0..3)
        .map(|_| {
            let lock = a.lock("a");
            env.spawn(async move { lock.lock().non_fair().timeout(LONG).await.unwrap() })
        })
        .collect();
    env.eventually("they wait in the cohort", async || a.stats().waiting == 3).await;
    env.eventually("the cohort is queued", async || lock.inspect().await.unwrap().waiters == 1).await;
    assert_eq!(a.stats().waiting, 3, "one ticket for three");
    fair.release().await.unwrap();
    let mut waiting = line;
    for left in (0..3).rev() {
        let (guard, _, others) = env.soon("one of the cohort", futures::future::select_all(waiting)).await;
        waiting = others;
        let state = lock.inspect().await.unwrap();
        assert_eq!((state.holder.unwrap().client, state.waiters), (Some(a.id()), 0), "{left} wait in the cohort");
        assert_eq!(a.stats().waiting, left);
        guard.release().await.unwrap();
    }
}

async fn force_release_tells_the_holder_and_serves_the_next(env: Env) {
    let (a, b, operator) = (env.client().await, env.client().await, env.client().await);
    let guard = a.lock("a").lock().await.unwrap();
    let next = waiter(&env, &b.lock("a")).await;
    let between = operator.lock("a").force_release().await.unwrap().expect("it was held");
    // The loss is noticed at once, and not by a renewal 10 s later.
    let told = env.now();
    assert_eq!(env.soon("the holder is told", guard.lost()).await, Loss::Revoked);
    assert!(env.now() - told < Duration::from_secs(5));
    assert!(!guard.is_valid());
    let next = env.soon("the next one is served", next).await;
    assert!(guard.token() < between && between < next.token(), "{} {between} {}", guard.token(), next.token());
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    let state = operator.lock("a").inspect().await.unwrap();
    assert_eq!(state.holder.map(|holder| holder.token), Some(next.token()));
    next.release().await.unwrap();
}

async fn force_release_of_a_free_lock_is_nothing(env: Env) {
    let client = env.client().await;
    let lock = client.lock("a");
    assert_eq!(lock.force_release().await.unwrap(), None);
    let guard = lock.lock().await.unwrap();
    let token = guard.token();
    guard.release().await.unwrap();
    assert_eq!(lock.force_release().await.unwrap(), None);
    // An operator may also release a lock that has no waiters.
    let guard = lock.lock().await.unwrap();
    let taken = lock.force_release().await.unwrap().unwrap();
    assert!(token < guard.token() && guard.token() < taken);
    assert_eq!(env.soon("told", guard.lost()).await, Loss::Revoked);
    assert!(lock.inspect().await.unwrap().holder.is_none());
}
