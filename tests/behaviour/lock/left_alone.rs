//! Futures that are neither polled nor dropped: an acquisition keeps the others waiting for one lease, and no longer; a
//! release blocks no waiter.

use std::time::Duration;

use bowline::{Client, LockGuard, Result};
use futures::future::BoxFuture;

use super::{queued, waiter};
use crate::lab;
use crate::support::env::{Env, TestClient, on_every_runtime};
use crate::support::polled::poll_once;

on_every_runtime! {
    who_does_not_read_that_it_waits_costs_one_lease,
    who_sleeps_through_its_turn_costs_one_lease,
    who_wakes_after_its_turn_acquires,
    a_release_whose_reply_is_not_read_serves_its_own_client_too,
    a_turn_whose_reply_is_not_read_serves_its_own_client_too,
}

/// Of all clients: those who wait look at the hold in front of them every third of theirs.
const LEASE: Duration = Duration::from_millis(1500);

/// The lock, held; and an acquisition of another client that was polled once.
async fn asleep(env: &Env) -> (LockGuard, Client, BoxFuture<'static, Result<LockGuard>>) {
    let other = env.client_with(|config| config.lease(LEASE)).await;
    let client = env.client_with(|config| config.lease(LEASE)).await;
    let held = other.lock("a").lock().await.unwrap();
    let lock = client.lock("a");
    let mut asleep: BoxFuture<'static, _> = Box::pin(async move { lock.lock().await });
    assert!(poll_once(&mut asleep).await.is_none());
    (held, other.client.clone(), asleep)
}

/// As [`asleep`], but it knows that it waits, so its ticket gets heartbeats.
async fn asleep_in_the_queue(env: &Env) -> (LockGuard, Client, BoxFuture<'static, Result<LockGuard>>) {
    let (held, other, mut asleep) = asleep(env).await;
    queued(env, &other.lock("a"), 1).await;
    // The answer may take some time to arrive.
    for _ in 0..10 {
        env.sleep(Duration::from_millis(5)).await;
        assert!(poll_once(&mut asleep).await.is_none());
    }
    (held, other, asleep)
}

async fn who_does_not_read_that_it_waits_costs_one_lease(env: Env) {
    let (held, other, asleep) = asleep(&env).await;
    queued(&env, &other.lock("a"), 1).await;
    let behind = waiter(&env, &other.lock("a")).await;
    held.release().await.unwrap();
    env.soon("the next waiter", behind).await.release().await.unwrap();
    drop(asleep);
}

async fn who_sleeps_through_its_turn_costs_one_lease(env: Env) {
    let (held, other, asleep) = asleep_in_the_queue(&env).await;
    let behind = waiter(&env, &other.lock("a")).await;
    // Longer than a ticket lives without a heartbeat.
    env.sleep(LEASE * 3 / 2).await;
    assert_eq!(other.lock("a").inspect().await.unwrap().waiters, 2);
    let token = held.token();
    held.release().await.unwrap();
    let next = env.soon("the next waiter", behind).await;
    assert!(next.token().get() > token.get() + 1, "it had its turn");
    next.release().await.unwrap();
    drop(asleep);
}

async fn who_wakes_after_its_turn_acquires(env: Env) {
    let (held, other, asleep) = asleep_in_the_queue(&env).await;
    held.release().await.unwrap();
    env.sleep(LEASE * 2).await;
    let guard = env.soon("it acquires", asleep).await.unwrap();
    assert!(guard.is_valid());
    assert_eq!(other.lock("a").inspect().await.unwrap().holder.unwrap().token, guard.token());
    guard.release().await.unwrap();
}

/// Nothing else looks sooner than the tests' deadlines.
const HOUR: Duration = Duration::from_secs(3600);

/// A release that was polled once and whose reply is not read, and the waiter that it serves. The reply carries the
/// message that the waiter's ticket is granted.
async fn unread_release(
    env: &Env,
    client: &TestClient,
) -> (BoxFuture<'static, Result<()>>, BoxFuture<'static, lab::LockGuard>) {
    let lock = client.lock("a");
    loop {
        let held = lock.lock().await.unwrap();
        let next = waiter(env, &lock).await;
        client.counts.reset();
        let mut release: BoxFuture<'static, _> = Box::pin(held.release());
        let Some(released) = poll_once(&mut release).await else { return (release, next) };
        // This thread stood still, and another one has received the reply before the poll looked for it.
        released.unwrap();
        env.soon("the next one", next).await.release().await.unwrap();
    }
}

async fn a_release_whose_reply_is_not_read_serves_its_own_client_too(env: Env) {
    let client = env.client_with(|config| config.lease(HOUR)).await;
    let lock = client.lock("a");
    let (release, next) = unread_release(&env, &client).await;
    let next = env.soon("the next one", next).await;
    assert_eq!((client.counts.of("lock_release"), client.counts.of("lock_heartbeat")), (1, 1));
    release.await.unwrap();
    assert!(next.is_valid());
    // A reply that is read in time causes no heartbeat.
    let last = waiter(&env, &lock).await;
    client.counts.reset();
    next.release().await.unwrap();
    env.soon("the last one", last).await.release().await.unwrap();
    assert_eq!(client.counts.of("lock_heartbeat"), 0);
}

async fn a_turn_whose_reply_is_not_read_serves_its_own_client_too(env: Env) {
    let client = env.client_with(|config| config.lease(HOUR).handoff_time(Duration::ZERO)).await;
    let lock = client.lock("a");
    let held = lock.lock().non_fair().await.unwrap();
    let next = waiter(&env, &lock).await;
    let mut behind = Box::pin(lock.lock().non_fair().into_future());
    assert!(poll_once(&mut behind).await.is_none());
    held.release().await.unwrap();
    // The member releases and queues up, and the reply says that the next ticket is granted.
    assert!(poll_once(&mut behind).await.is_none());
    let next = env.soon("the next one", next).await;
    next.release().await.unwrap();
    env.soon("the one behind", behind).await.unwrap().release().await.unwrap();
}
