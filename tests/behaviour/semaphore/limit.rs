//! The limit: what does not fit, and what becomes of those inside and those who wait when it changes.

use bowline::{ErrorKind, MAX_PERMITS};
use futures::future::join_all;

use super::waiter;
use crate::lab::{Env, on_every_server};

on_every_server! {
    a_larger_limit_lets_in_those_who_wait,
    a_smaller_limit_drains,
    a_waiter_that_no_longer_fits_is_told,
    a_stored_limit_wins_over_the_handles,
    more_than_the_limit_is_an_error,
    bad_numbers_are_errors_and_nothing_is_sent,
}

/// The limit stays for a day, which is meant to be, and not what a test should leave.
pub(crate) fn forget_the_limit(env: &crate::support::env::Env) {
    assert_eq!(env.keys(), ["bowline:sem:{a}"]);
    env.leaves_keys();
}

async fn a_larger_limit_lets_in_those_who_wait(env: Env) {
    let (a, b) = (env.client().await.semaphore("a", 1), env.client().await.semaphore("a", 1));
    let one = a.acquire().await.unwrap();
    let waiting = [waiter(&env, &b, 1).await, waiter(&env, &b, 1).await];
    let last = waiter(&env, &b, 1).await;
    a.set_limit(3).await.unwrap();
    let three = env.soon("two more", join_all(waiting)).await;
    let seen = b.inspect().await.unwrap();
    assert_eq!((seen.limit, seen.used, seen.waiters), (3, 3, 1));
    one.release().await.unwrap();
    env.soon("the last one", last).await.unwrap().release().await.unwrap();
    for permit in three {
        permit.unwrap().release().await.unwrap();
    }
    forget_the_limit(&env);
}

async fn a_smaller_limit_drains(env: Env) {
    let semaphore = env.client().await.semaphore("a", 3);
    let mut permits = Vec::new();
    for _ in 0..3 {
        permits.push(semaphore.acquire().await.unwrap());
    }
    semaphore.set_limit(1).await.unwrap();
    let waiting = waiter(&env, &semaphore, 1).await;
    assert_eq!(semaphore.available().await.unwrap(), 0);
    for left in [2, 1] {
        permits.pop().unwrap().release().await.unwrap();
        let seen = semaphore.inspect().await.unwrap();
        assert_eq!((seen.used, seen.waiters), (left, 1), "a request was granted while {left} hold permits of 1");
    }
    assert!(permits[0].is_valid());
    permits.pop().unwrap().release().await.unwrap();
    env.soon("the one who waited", waiting).await.unwrap().release().await.unwrap();
    forget_the_limit(&env);
}

async fn a_waiter_that_no_longer_fits_is_told(env: Env) {
    let (a, b) = (env.client().await.semaphore("a", 3), env.client().await.semaphore("a", 3));
    let one = a.acquire().await.unwrap();
    let all = waiter(&env, &b, 3).await;
    let two = waiter(&env, &b, 2).await;
    a.set_limit(2).await.unwrap();
    let error = env.soon("told", all).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OverLimit, "{error}");
    one.release().await.unwrap();
    env.soon("the one behind it", two).await.unwrap().release().await.unwrap();
    forget_the_limit(&env);
}

async fn a_stored_limit_wins_over_the_handles(env: Env) {
    let client = env.client().await;
    let (small, large) = (client.semaphore("a", 1), client.semaphore("a", 100));
    small.set_limit(2).await.unwrap();
    assert_eq!((small.available().await.unwrap(), large.available().await.unwrap()), (2, 2));
    let two = small.acquire_many(2).await.unwrap();
    assert!(large.try_acquire().await.unwrap().is_none());
    assert_eq!(large.acquire_many(3).await.unwrap_err().kind(), ErrorKind::OverLimit);
    two.release().await.unwrap();
    forget_the_limit(&env);
}

async fn more_than_the_limit_is_an_error(env: Env) {
    let semaphore = env.client().await.semaphore("a", 3);
    assert_eq!(semaphore.acquire_many(4).await.unwrap_err().kind(), ErrorKind::OverLimit);
    assert_eq!(semaphore.try_acquire_many(4).await.unwrap_err().kind(), ErrorKind::OverLimit);
    assert!(env.keys().is_empty(), "{:?}", env.keys());
}

async fn bad_numbers_are_errors_and_nothing_is_sent(env: Env) {
    let client = env.client().await;
    let good = client.semaphore("a", 3);
    let invalid = ErrorKind::InvalidInput;
    assert_eq!(good.acquire_many(0).await.unwrap_err().kind(), invalid);
    assert_eq!(good.try_acquire_many(0).await.unwrap_err().kind(), invalid);
    let error = good.set_limit(0).await.unwrap_err();
    assert_eq!((error.kind(), error.operation(), error.name()), (invalid, "set_limit", Some("a")));
    assert_eq!(good.set_limit(MAX_PERMITS + 1).await.unwrap_err().kind(), invalid);
    for limit in [0, MAX_PERMITS + 1, u32::MAX] {
        let bad = client.semaphore("a", limit);
        assert_eq!(bad.acquire().await.unwrap_err().kind(), invalid);
        assert_eq!(bad.try_acquire().await.unwrap_err().kind(), invalid);
        assert_eq!(bad.available().await.unwrap_err().kind(), invalid);
        assert_eq!(bad.set_limit(3).await.unwrap_err().kind(), invalid);
    }
    assert_eq!(client.semaphore("", 3).acquire().await.unwrap_err().kind(), invalid);
    assert_eq!(client.counts.total(), 0);
    let all = client.semaphore("a", MAX_PERMITS).acquire_many(MAX_PERMITS).await.unwrap();
    all.release().await.unwrap();
}
