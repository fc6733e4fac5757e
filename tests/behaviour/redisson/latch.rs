//! Latches in Redisson's format, between clients of bowline.

use std::time::Duration;

use bowline::{ErrorKind, Result};
use futures::future::{BoxFuture, join_all};

use super::client;
use crate::lab::{Client, Env, on_every_server};

on_every_server! {
    all_that_wait_are_let_through_at_zero_by_a_message,
    an_open_or_missing_latch_does_not_block,
    set_once_and_again_when_it_is_open,
    each_call_counts_once,
    a_wait_ends_with_its_timeout_and_leaves_nothing,
    bad_names_and_numbers_are_errors_before_anything_is_sent,
    closing_the_client_ends_its_waits,
    a_latch_that_is_deleted_is_open,
}

pub(super) const NAME: &str = "java:l";
pub(super) const CHANNEL: &str = "redisson_countdownlatch__channel__{java:l}";

/// As the server or another program may.
fn delete(env: &Env) {
    if env.is_embedded() {
        env.embedded().eval("redis.call('DEL', KEYS[1])", &[NAME.as_bytes()], &[]).unwrap();
    } else {
        env.redis::<i64>(&["DEL", NAME]);
    }
}

/// A task that waits for the latch, and is subscribed and has asked since.
async fn waiter(env: &Env, client: &Client, others: i64) -> BoxFuture<'static, Result<()>> {
    let latch = client.redisson().count_down_latch(NAME);
    let waiting = env.spawn(async move { latch.wait().await });
    env.eventually("it listens", async || env.listeners(CHANNEL) == others + 1).await;
    waiting
}

async fn all_that_wait_are_let_through_at_zero_by_a_message(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let (one, other) = (a.redisson().count_down_latch(NAME), b.redisson().count_down_latch(NAME));
    for _ in 0..2 {
        assert!(one.try_set_count(2).await.unwrap());
        assert_eq!(env.keys(), [NAME]);
        let mut waiters = vec![waiter(&env, &a, 0).await, waiter(&env, &b, 1).await];
        // It shares the subscription.
        waiters.push(env.spawn({
            let latch = other.clone();
            async move { latch.wait().await }
        }));
        assert_eq!(other.count_down().await.unwrap(), 1);
        assert_eq!((one.count().await.unwrap(), other.count().await.unwrap()), (1, 1));
        a.counts.reset();
        assert_eq!(one.count_down().await.unwrap(), 0);
        assert_eq!(a.counts.of("shared_count_down"), 1);
        // The lease is an hour, so that nothing but the message lets them through.
        for passed in env.soon("all of them", join_all(waiters)).await {
            passed.unwrap();
        }
        assert!(env.keys().is_empty());
        env.eventually("nobody listens", async || env.listeners(CHANNEL) == 0).await;
    }
}

async fn an_open_or_missing_latch_does_not_block(env: Env) {
    let client = client(&env).await;
    let (latch, before) = (client.redisson().count_down_latch(NAME), client.counts.subscribes());
    env.soon("no latch", latch.wait()).await.unwrap();
    assert!(latch.try_set_count(1).await.unwrap());
    assert_eq!(latch.count_down().await.unwrap(), 0);
    env.soon("an open latch", latch.wait().timeout(Duration::from_secs(5))).await.unwrap();
    assert_eq!(client.counts.subscribes(), before, "there was nothing to wait for");
}

async fn set_once_and_again_when_it_is_open(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let (a, b) = (a.redisson().count_down_latch(NAME), b.redisson().count_down_latch(NAME));
    assert!(a.try_set_count(1).await.unwrap());
    assert!(!b.try_set_count(5).await.unwrap());
    assert_eq!(b.count_down().await.unwrap(), 0);
    assert_eq!(b.count_down().await.unwrap(), 0, "below zero is nothing");
    assert!(b.try_set_count(u32::MAX).await.unwrap());
    assert_eq!(a.count_down().await.unwrap(), u64::from(u32::MAX) - 1);
    delete(&env);
}

async fn each_call_counts_once(env: Env) {
    let clients = [client(&env).await, client(&env).await];
    let latch = clients[0].redisson().count_down_latch(NAME);
    assert!(latch.try_set_count(64).await.unwrap());
    let tasks = clients.iter().flat_map(|client| std::iter::repeat_n(client, 8)).map(|client| {
        let latch = client.redisson().count_down_latch(NAME);
        env.spawn(async move {
            let mut zeros = 0;
            for _ in 0..4 {
                zeros += u32::from(latch.count_down().await.unwrap() == 0);
            }
            zeros
        })
    });
    let tasks: Vec<_> = tasks.collect();
    env.soon("it opens", latch.wait()).await.unwrap();
    assert_eq!(env.soon("all have counted", join_all(tasks)).await.iter().sum::<u32>(), 1);
}

async fn a_wait_ends_with_its_timeout_and_leaves_nothing(env: Env) {
    let client = client(&env).await;
    let latch = client.redisson().count_down_latch(NAME);
    assert!(latch.try_set_count(1).await.unwrap());
    for timeout in [1, 50, 300] {
        let late = latch.wait().timeout(Duration::from_millis(timeout)).await.unwrap_err();
        assert_eq!((late.kind(), late.name()), (ErrorKind::TimedOut, Some(NAME)));
    }
    assert_eq!(latch.count_down().await.unwrap(), 0);
    env.eventually("nobody listens", async || env.listeners(CHANNEL) == 0).await;
}

async fn bad_names_and_numbers_are_errors_before_anything_is_sent(env: Env) {
    let client = client(&env).await;
    let latch = client.redisson().count_down_latch(NAME);
    let (empty, mapped) = (
        client.redisson().count_down_latch(""),
        client.redisson().map_names(|_| "bowline:lock:{a}".to_owned()).count_down_latch("a"),
    );
    let errors = [
        latch.try_set_count(0).await.unwrap_err(),
        latch.wait().timeout(Duration::ZERO).await.unwrap_err(),
        empty.try_set_count(1).await.unwrap_err(),
        empty.wait().await.unwrap_err(),
        mapped.count_down().await.unwrap_err(),
        mapped.count().await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
    assert_eq!(client.counts.total(), 0);
}

async fn closing_the_client_ends_its_waits(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let latch = b.redisson().count_down_latch(NAME);
    assert!(latch.try_set_count(1).await.unwrap());
    let waiting = waiter(&env, &a, 0).await;
    a.close().await;
    assert_eq!(env.soon("it fails", waiting).await.unwrap_err().kind(), ErrorKind::Closed);
    let closed = a.redisson().count_down_latch(NAME);
    assert_eq!(closed.count_down().await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(latch.count_down().await.unwrap(), 0);
}

/// As Java or the server may do it, without a message that wakes.
async fn a_latch_that_is_deleted_is_open(env: Env) {
    let a = env.client_with_all_rights(|config| config.lease(Duration::from_secs(3))).await;
    assert!(a.redisson().count_down_latch(NAME).try_set_count(1).await.unwrap());
    let waiting = waiter(&env, &a, 0).await;
    delete(&env);
    env.soon("it looks after a third of the lease", waiting).await.unwrap();
}
