//! Semaphores in Redisson's format, between clients of bowline.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bowline::{ErrorKind, Result};
use futures::future::{BoxFuture, join_all};

use super::client;
use crate::lab::{Client, Env, RedissonPermits, on_every_server};

on_every_server! {
    permits_are_taken_and_given_back,
    a_waiter_is_woken_by_a_release,
    permits_that_are_dropped_are_given_back,
    permits_that_are_forgotten_stay_taken,
    a_drain_takes_what_is_there,
    permits_are_added_and_taken_away,
    never_more_are_out_than_there_are,
    a_wait_for_permits_ends_with_its_timeout,
    bad_numbers_of_permits_are_errors_before_anything_is_sent,
    closing_ends_waits_for_permits,
}

pub(super) const NAME: &str = "java:s";
pub(super) const CHANNEL: &str = "redisson_sc:{java:s}";

/// A task that waits for permits, and is subscribed.
async fn waiter(env: &Env, client: &Client, permits: u32) -> BoxFuture<'static, Result<RedissonPermits>> {
    let semaphore = client.redisson().semaphore(NAME);
    let waiting = env.spawn(async move { semaphore.acquire_many(permits, None).await });
    env.eventually("it listens", async || env.listeners(CHANNEL) == 1).await;
    waiting
}

pub(super) fn delete(env: &crate::support::env::Env) {
    if env.is_embedded() {
        env.embedded().eval("redis.call('DEL', KEYS[1])", &[NAME.as_bytes()], &[]).unwrap();
    } else {
        env.redis::<i64>(&["DEL", NAME]);
    }
}

async fn permits_are_taken_and_given_back(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let (one, other) = (a.redisson().semaphore(NAME), b.redisson().semaphore(NAME));
    assert!(one.try_acquire().await.unwrap().is_none(), "nothing is set");
    assert!(one.try_set_permits(3).await.unwrap());
    assert!(!other.try_set_permits(5).await.unwrap());
    let two = one.acquire_many(2, None).await.unwrap();
    assert_eq!((two.permits(), other.available().await.unwrap()), (2, 1));
    assert!(other.try_acquire_many(2).await.unwrap().is_none());
    let last = other.try_acquire().await.unwrap().unwrap();
    assert!(one.try_acquire().await.unwrap().is_none());
    a.counts.reset();
    two.release().await.unwrap();
    assert_eq!((a.counts.of("shared_release"), a.counts.total()), (1, 1));
    last.release().await.unwrap();
    assert_eq!(one.available().await.unwrap(), 3);
    assert_eq!(env.keys(), [NAME]);
    delete(&env);
}

async fn a_waiter_is_woken_by_a_release(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let semaphore = a.redisson().semaphore(NAME);
    assert!(semaphore.try_set_permits(2).await.unwrap());
    for by_handle in [false, true] {
        let all = semaphore.acquire_many(2, None).await.unwrap();
        let waiting = waiter(&env, &b, 2).await;
        // The lease is an hour, so that nothing but messages wakes it.
        if by_handle {
            all.forget();
            semaphore.release(1).await.unwrap();
            semaphore.release(1).await.unwrap();
        } else {
            all.release().await.unwrap();
        }
        env.soon("it is woken", waiting).await.unwrap().release().await.unwrap();
        env.eventually("nobody listens", async || env.listeners(CHANNEL) == 0).await;
    }
    delete(&env);
}

async fn permits_that_are_dropped_are_given_back(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let semaphore = a.redisson().semaphore(NAME);
    assert!(semaphore.try_set_permits(1).await.unwrap());
    for _ in 0..3 {
        let permit = semaphore.acquire_many(1, None).await.unwrap();
        let waiting = waiter(&env, &b, 1).await;
        drop(permit);
        drop(env.soon("it is woken", waiting).await.unwrap());
        env.eventually("it is back", async || semaphore.available().await.unwrap() == 1).await;
        env.eventually("nobody listens", async || env.listeners(CHANNEL) == 0).await;
    }
    delete(&env);
}

async fn permits_that_are_forgotten_stay_taken(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let (semaphore, others) = (a.redisson().semaphore(NAME), b.redisson().semaphore(NAME));
    assert!(semaphore.try_set_permits(2).await.unwrap());
    assert_eq!(semaphore.acquire_many(2, None).await.unwrap().forget(), 2);
    a.close().await;
    env.sleep(Duration::from_millis(300)).await;
    assert_eq!(others.available().await.unwrap(), 0);
    others.release(2).await.unwrap();
    assert_eq!(others.available().await.unwrap(), 2);
    delete(&env);
}

async fn a_drain_takes_what_is_there(env: Env) {
    let client = client(&env).await;
    let semaphore = client.redisson().semaphore(NAME);
    assert!(semaphore.drain().await.unwrap().is_none());
    assert!(semaphore.try_set_permits(5).await.unwrap());
    let one = semaphore.acquire_many(1, None).await.unwrap();
    let rest = semaphore.drain().await.unwrap().unwrap();
    assert_eq!(rest.permits(), 4);
    assert!(semaphore.drain().await.unwrap().is_none());
    one.release().await.unwrap();
    rest.release().await.unwrap();
    assert_eq!(semaphore.available().await.unwrap(), 5);
    delete(&env);
}

async fn permits_are_added_and_taken_away(env: Env) {
    let client = client(&env).await;
    let semaphore = client.redisson().semaphore(NAME);
    semaphore.add_permits(2).await.unwrap();
    let both = semaphore.acquire_many(2, None).await.unwrap();
    semaphore.add_permits(-1).await.unwrap();
    assert_eq!(semaphore.available().await.unwrap(), 0);
    both.release().await.unwrap();
    assert_eq!(semaphore.available().await.unwrap(), 1, "one is missing");
    delete(&env);
}

async fn never_more_are_out_than_there_are(env: Env) {
    let clients = [client(&env).await, client(&env).await];
    let out = Arc::new(AtomicU32::new(0));
    assert!(clients[0].redisson().semaphore(NAME).try_set_permits(3).await.unwrap());
    let tasks = clients.iter().flat_map(|client| std::iter::repeat_n(client, 6)).enumerate().map(|(n, client)| {
        let (semaphore, out, wanted) = (client.redisson().semaphore(NAME), out.clone(), 1 + n as u32 % 2);
        let inner = env.clone();
        env.spawn(async move {
            for _ in 0..5 {
                let permits = semaphore.acquire_many(wanted, None).await.unwrap();
                assert!(out.fetch_add(wanted, Ordering::SeqCst) + wanted <= 3, "more are out than there are");
                inner.sleep(Duration::from_millis(1)).await;
                out.fetch_sub(wanted, Ordering::SeqCst);
                permits.release().await.unwrap();
            }
        })
    });
    let tasks: Vec<_> = tasks.collect();
    env.soon("all are served", join_all(tasks)).await;
    assert_eq!(clients[1].redisson().semaphore(NAME).available().await.unwrap(), 3);
    delete(&env);
}

async fn a_wait_for_permits_ends_with_its_timeout(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let (semaphore, others) = (a.redisson().semaphore(NAME), b.redisson().semaphore(NAME));
    assert!(semaphore.try_set_permits(1).await.unwrap());
    let held = semaphore.acquire_many(1, None).await.unwrap();
    for timeout in [1, 50, 300] {
        let late = others.acquire_many(1, Some(Duration::from_millis(timeout))).await.unwrap_err();
        assert_eq!((late.kind(), late.name()), (ErrorKind::TimedOut, Some(NAME)));
    }
    held.release().await.unwrap();
    env.eventually("it is free", async || semaphore.available().await.unwrap() == 1).await;
    env.eventually("nobody listens", async || env.listeners(CHANNEL) == 0).await;
    delete(&env);
}

async fn bad_numbers_of_permits_are_errors_before_anything_is_sent(env: Env) {
    let client = client(&env).await;
    let (semaphore, empty) = (client.redisson().semaphore(NAME), client.redisson().semaphore(""));
    let errors = [
        semaphore.try_set_permits(0).await.unwrap_err(),
        semaphore.try_set_permits(1 << 31).await.unwrap_err(),
        semaphore.acquire_many(0, None).await.unwrap_err(),
        semaphore.acquire_many(1, Some(Duration::ZERO)).await.unwrap_err(),
        semaphore.try_acquire_many(u32::MAX).await.unwrap_err(),
        semaphore.release(0).await.unwrap_err(),
        semaphore.add_permits(0).await.unwrap_err(),
        semaphore.add_permits(i32::MIN).await.unwrap_err(),
        empty.drain().await.unwrap_err(),
        empty.available().await.unwrap_err(),
        empty.acquire_many(1, None).await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
    let told = semaphore.add_permits(0).await.unwrap_err().to_string();
    assert!(told.contains("1 to 2147483647 permits, or -2147483647 to -1, not 0"), "{told}");
    assert_eq!(client.counts.total(), 0);
}

async fn closing_ends_waits_for_permits(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let semaphore = b.redisson().semaphore(NAME);
    assert!(semaphore.try_set_permits(1).await.unwrap());
    let held = semaphore.acquire_many(1, None).await.unwrap();
    let waiting = waiter(&env, &a, 1).await;
    a.close().await;
    assert_eq!(env.soon("it fails", waiting).await.unwrap_err().kind(), ErrorKind::Closed);
    let closed = a.redisson().semaphore(NAME);
    assert_eq!(closed.try_acquire().await.unwrap_err().kind(), ErrorKind::Closed);
    held.release().await.unwrap();
    assert_eq!(semaphore.available().await.unwrap(), 1);
    delete(&env);
}
