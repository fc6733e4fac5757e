//! Waiting: its order and its limits, and that a grant costs other waiters nothing.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::ErrorKind;

use super::{LONG, free_at_once, queued, waiter};
use crate::lab::{Env, on_every_server};

on_every_server! {
    first_come_first_served_across_clients,
    a_timeout_leaves_nothing_and_the_next_one_is_served,
    a_timeout_is_kept_and_not_cut_short,
    a_full_queue_is_an_error_and_stays_as_it_is,
    dropping_a_guard_hands_over,
}

async fn first_come_first_served_across_clients(env: Env) {
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(env.client().await);
    }
    let held = clients[0].lock("a").lock().await.unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    // Neighbours in the queue belong to different clients, or to the same one.
    for (n, client) in [0, 1, 2, 3, 0, 0, 3, 2, 1, 1, 2, 0].into_iter().enumerate() {
        let (lock, order) = (clients[client].lock("a"), order.clone());
        tasks.push(env.spawn(async move {
            let guard = lock.lock().fair().timeout(LONG).await.unwrap();
            order.lock().unwrap().push((n, guard.token()));
            guard.release().await.unwrap();
        }));
        queued(&env, &clients[0].lock("a"), n as u64 + 1).await;
    }
    let first = held.token();
    held.release().await.unwrap();
    for task in tasks {
        task.await;
    }
    let order = order.lock().unwrap().clone();
    assert_eq!(order.iter().map(|(n, _)| *n).collect::<Vec<_>>(), (0..12).collect::<Vec<_>>());
    assert!(first < order[0].1);
    assert!(order.windows(2).all(|pair| pair[0].1 < pair[1].1), "tokens in another order: {order:?}");
}

async fn a_timeout_leaves_nothing_and_the_next_one_is_served(env: Env) {
    let (a, b, c) = (env.client().await, env.client().await, env.client().await);
    let held = a.lock("a").lock().await.unwrap();
    let timed_out = env.spawn({
        let lock = b.lock("a");
        async move { lock.lock().timeout(Duration::from_secs(1)).await }
    });
    queued(&env, &c.lock("a"), 1).await;
    let next = waiter(&env, &c.lock("a")).await;
    let error = env.soon("it gives up", timed_out).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!((error.operation(), error.name()), ("lock", Some("a")));
    assert!(error.is_retryable());
    queued(&env, &a.lock("a"), 1).await;
    held.release().await.unwrap();
    env.soon("the next one is served", next).await.release().await.unwrap();
    free_at_once(&env, &b.lock("a")).await;
}

async fn a_timeout_is_kept_and_not_cut_short(env: Env) {
    let (a, b) = (env.client().await, env.client().await);
    let held = a.lock("a").lock().await.unwrap();
    let (before, timeout) = (env.now(), Duration::from_millis(400));
    let error = b.lock("a").lock().timeout(timeout).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(env.now() - before >= timeout, "gave up after {:?}", env.now() - before);
    held.release().await.unwrap();
}

async fn a_full_queue_is_an_error_and_stays_as_it_is(env: Env) {
    let (a, b) = (env.client().await, env.client().await);
    let held = a.lock("a").lock().await.unwrap();
    let first = waiter(&env, &b.lock("a")).await;
    let second = waiter(&env, &a.lock("a")).await;
    let error = b.lock("a").lock().max_waiters(2).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::QueueFull);
    queued(&env, &a.lock("a"), 2).await;
    // One more place makes room for one more.
    let third = env.spawn({
        let lock = a.lock("a");
        async move { lock.lock().max_waiters(3).timeout(LONG).await.unwrap() }
    });
    queued(&env, &b.lock("a"), 3).await;
    assert_eq!(b.lock("a").lock().max_waiters(3).await.unwrap_err().kind(), ErrorKind::QueueFull);
    let mut token = held.token();
    held.release().await.unwrap();
    for (n, next) in [first, second, third].into_iter().enumerate() {
        let guard = env.soon("those in the queue are served", next).await;
        assert!(guard.token() > token, "{n}");
        token = guard.token();
        guard.release().await.unwrap();
    }
    // If the lock is free, the limit does not matter.
    b.lock("a").lock().max_waiters(1).await.unwrap().release().await.unwrap();
}

async fn dropping_a_guard_hands_over(env: Env) {
    let (a, b) = (env.client().await, env.client().await);
    for contended in [false, true] {
        let held = a.lock("a").lock().await.unwrap();
        let token = held.token();
        let next = if contended { Some(waiter(&env, &b.lock("a")).await) } else { None };
        drop(held);
        let guard = match next {
            Some(next) => env.soon("the waiter is served", next).await,
            None => env.soon("the lock is free", b.lock("a").lock()).await.unwrap(),
        };
        assert!(guard.token() > token);
        drop(guard);
    }
    // This also works if the client is dropped together with the guard: the release outlives both.
    let held = a.lock("b").lock().await.unwrap();
    drop((held, a));
    env.soon("the lock is free", b.lock("b").lock()).await.unwrap().release().await.unwrap();
}
