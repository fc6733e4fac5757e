//! Operators drop waiters.

use std::time::Duration;

use bowline::{ErrorKind, Whose};
use futures::future::join_all;

use crate::lab::{Env, on_every_server};
use crate::lock::queued;

on_every_server! {
    those_of_a_client_fail_and_the_others_stay,
    all_of_a_cohort_fail_together,
    who_waits_within_the_client_that_holds_stays,
    writers_and_readers_are_dropped,
    those_who_wait_for_permits_are_dropped,
    it_ends_although_those_who_were_dropped_ask_again,
    what_makes_no_sense_is_refused,
}

const LONG: Duration = Duration::from_secs(20);

async fn those_of_a_client_fail_and_the_others_stay(env: Env) {
    let (a, b, c) = (env.client().await, env.client().await, env.client().await);
    let guard = a.lock("a").lock().await.unwrap();
    let mut waiting = Vec::new();
    for (n, client) in (1..).zip([&b, &c, &b]) {
        let lock = client.lock("a");
        waiting.push(env.spawn(async move { lock.lock().fair().timeout(LONG).await }));
        queued(&env, &a.lock("a"), n).await;
    }
    let last = waiting.pop().unwrap();
    let (next, first) = (waiting.pop().unwrap(), waiting.pop().unwrap());
    assert_eq!(a.lock("a").drop_waiters(Whose::Client(b.id())).await.unwrap(), 2);
    for dropped in env.soon("they are told", join_all([first, last])).await {
        let error = dropped.map(drop).unwrap_err();
        assert_eq!((error.kind(), error.name()), (ErrorKind::Dropped, Some("a")), "{error}");
        assert!(error.is_retryable() && error.to_string().contains("an operator"), "{error}");
    }
    assert_eq!(a.lock("a").inspect().await.unwrap().waiters, 1);
    assert_eq!((b.stats().waiting, guard.is_valid()), (0, true));
    assert_eq!(a.lock("a").drop_waiters(Whose::Client(b.id())).await.unwrap(), 0);
    guard.release().await.unwrap();
    env.soon("the next", next).await.unwrap().release().await.unwrap();
    // Nothing is left that would keep it away.
    b.lock("a").lock().await.unwrap().release().await.unwrap();
}

async fn all_of_a_cohort_fail_together(env: Env) {
    let (a, b) = (env.client().await, env.client().await);
    let guard = a.lock("a").lock().await.unwrap();
    let lock = b.lock("a");
    let cohort: Vec<_> = (0..3)
        .map(|_| {
            let lock = lock.clone();
            env.spawn(async move { lock.lock().non_fair().timeout(LONG).await })
        })
        .collect();
    env.eventually("they wait", async || b.stats().waiting == 3 && lock.inspect().await.unwrap().waiters == 1).await;
    assert_eq!(a.lock("a").drop_waiters(Whose::Everybody).await.unwrap(), 1);
    for dropped in env.soon("they are told", join_all(cohort)).await {
        assert_eq!(dropped.map(drop).unwrap_err().kind(), ErrorKind::Dropped);
    }
    assert_eq!(lock.inspect().await.unwrap().waiters, 0);
    guard.release().await.unwrap();
    lock.lock().non_fair().await.unwrap().release().await.unwrap();
}

async fn who_waits_within_the_client_that_holds_stays(env: Env) {
    let a = env.client_with(|config| config.handoff_time(Duration::from_secs(10))).await;
    let guard = a.lock("a").lock().non_fair().await.unwrap();
    let lock = a.lock("a");
    let next = env.spawn({
        let lock = lock.clone();
        async move { lock.lock().non_fair().timeout(LONG).await }
    });
    env.eventually("it waits", async || a.stats().waiting == 1).await;
    assert_eq!(lock.drop_waiters(Whose::Everybody).await.unwrap(), 0);
    guard.release().await.unwrap();
    env.soon("the next", next).await.unwrap().release().await.unwrap();
}

async fn writers_and_readers_are_dropped(env: Env) {
    let (a, b) = (env.client().await, env.client().await);
    let (lock, other) = (a.rw_lock("a"), b.rw_lock("a"));
    let guard = lock.write().await.unwrap();
    let writer = env.spawn({
        let other = other.clone();
        async move { other.write().timeout(LONG).await.map(drop) }
    });
    let reader = env.spawn({
        let other = other.clone();
        async move { other.read().timeout(LONG).await.map(drop) }
    });
    env.eventually("they wait", async || lock.inspect().await.unwrap().waiters == 2).await;
    assert_eq!(lock.drop_waiters(Whose::Client(a.id())).await.unwrap(), 0);
    assert_eq!(lock.drop_waiters(Whose::Client(b.id())).await.unwrap(), 2);
    for dropped in env.soon("they are told", join_all([writer, reader])).await {
        assert_eq!(dropped.unwrap_err().kind(), ErrorKind::Dropped);
    }
    assert!(guard.is_valid());
    guard.release().await.unwrap();
}

/// Also of a request that keeps smaller ones from what is free.
async fn those_who_wait_for_permits_are_dropped(env: Env) {
    let (a, b) = (env.client().await, env.client().await);
    let (semaphore, other) = (a.semaphore("a", 3), b.semaphore("a", 3));
    let held = semaphore.acquire().await.unwrap();
    let big = env.spawn({
        let other = other.clone();
        async move { other.acquire_many(3).timeout(LONG).await.map(drop) }
    });
    env.eventually("it waits", async || semaphore.inspect().await.unwrap().waiters == 1).await;
    let small = env.spawn({
        let semaphore = semaphore.clone();
        async move { semaphore.acquire().timeout(LONG).await }
    });
    env.eventually("both wait", async || semaphore.inspect().await.unwrap().waiters == 2).await;
    assert_eq!(semaphore.drop_waiters(Whose::Client(b.id())).await.unwrap(), 1);
    assert_eq!(env.soon("it is told", big).await.unwrap_err().kind(), ErrorKind::Dropped);
    env.soon("the small one", small).await.unwrap().release().await.unwrap();
    held.release().await.unwrap();
}

/// One call to the server removes 256 tickets.
async fn it_ends_although_those_who_were_dropped_ask_again(env: Env) {
    const WAITERS: u64 = 300;
    let (a, b) = (env.client().await, env.client().await);
    let guard = a.lock("a").lock().await.unwrap();
    let ask_again = (0..WAITERS).map(|_| {
        let lock = b.lock("a");
        env.spawn(async move {
            loop {
                let error = lock.lock().fair().timeout(3 * LONG).await.map(drop).unwrap_err();
                if error.kind() != ErrorKind::Dropped {
                    return error.kind();
                }
            }
        })
    });
    let ask_again: Vec<_> = ask_again.collect();
    queued(&env, &a.lock("a"), WAITERS).await;
    let dropped = env.soon("it ends", a.lock("a").drop_waiters(Whose::Everybody)).await.unwrap();
    assert!((WAITERS..=512).contains(&dropped), "{dropped}");
    b.close().await;
    assert!(join_all(ask_again).await.iter().all(|kind| *kind == ErrorKind::Closed));
    guard.release().await.unwrap();
}

async fn what_makes_no_sense_is_refused(env: Env) {
    let client = env.client().await;
    let error = client.lock("").drop_waiters(Whose::Everybody).await.unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::InvalidInput, "drop_waiters"), "{error}");
    assert_eq!(client.lock("a").drop_waiters(Whose::Everybody).await.unwrap(), 0);
    client.close().await;
    let error = client.lock("a").drop_waiters(Whose::Everybody).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
}
