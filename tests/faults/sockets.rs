//! Connections that are killed, cut anywhere, stalled and half-open.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bowline::ErrorKind;
use futures::future::{Either, join_all, select};

use crate::scene::{SLACK, acquiring, assert_holds, contended, fence, is_free, ms, until_free, until_waiting, waiting};
use crate::support::env::{Env, on_every_runtime};
use crate::support::proxy::Proxy;

on_every_runtime! {
    waiters_are_served_while_their_subscriptions_are_killed,
    a_waiter_that_did_not_listen_is_served_when_it_does_again,
    waiters_are_served_while_their_command_connections_are_killed,
    a_connection_may_be_cut_at_any_byte,
    a_waiter_may_be_cut_off_at_any_byte,
    swallowed_replies_are_made_up_for,
    a_message_swallowed_on_the_way_is_made_up_for,
    requests_that_were_stalled_do_no_harm,
}

async fn under_fire(env: &Env, kind: &str) {
    let inside = Arc::new(AtomicBool::new(false));
    let last = Arc::new(AtomicU64::new(0));
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(env.client().await);
    }
    let tasks = (0..16).map(|n| {
        let (lock, inside, last, clock) = (clients[n % 4].lock("a"), inside.clone(), last.clone(), env.clone());
        env.spawn(async move {
            for _ in 0..2 {
                let guard = lock.lock().await.unwrap();
                assert!(!inside.swap(true, Ordering::SeqCst), "two at once");
                assert!(last.swap(guard.token().get(), Ordering::SeqCst) < guard.token().get(), "a smaller token");
                clock.sleep(ms(5)).await;
                assert!(guard.is_valid());
                inside.store(false, Ordering::SeqCst);
                guard.release().await.unwrap();
            }
        })
    });
    let mut work = std::pin::pin!(join_all(tasks));
    let (start, mut killed) = (env.now(), 0);
    loop {
        if env.now() - start < ms(800) {
            killed += env.redis::<u64>(&["CLIENT", "KILL", "TYPE", kind]);
        }
        match select(work, std::pin::pin!(env.sleep(ms(40)))).await {
            Either::Left(_) => break,
            Either::Right(((), rest)) => work = rest,
        }
    }
    assert!(killed >= 4, "{killed}");
    assert!(env.now() - start < ms(15_000));
}

async fn waiters_are_served_while_their_subscriptions_are_killed(env: Env) {
    under_fire(&env, "pubsub").await;
}

/// The release finds no subscriber and leaves the lock free. Nothing but the restored subscription makes the waiter ask
/// before a third of its lease of 30 s has passed.
async fn a_waiter_that_did_not_listen_is_served_when_it_does_again(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    for _ in 0..3 {
        let (held, waiter) = contended(&env, &other, &client).await;
        env.redis::<u64>(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        held.release().await.unwrap();
        let start = env.now();
        let guard = env.soon("the waiter", waiter).await.unwrap();
        assert!(env.now() - start < ms(6000), "{:?}", env.now() - start);
        assert_holds(&env, &guard);
        guard.release().await.unwrap();
    }
}

async fn waiters_are_served_while_their_command_connections_are_killed(env: Env) {
    under_fire(&env, "normal").await;
}

/// Acquire and release, by a client whose connections are cut after that many bytes from it.
async fn cut_after(env: &Env, name: &str, bytes: Option<u64>, contended: bool) -> u64 {
    let target = env.server().port();
    let proxy = Proxy::start(target);
    let client = env.client_at(&proxy.url(), |config| config.command_timeout(ms(1000)).lease(ms(5000))).await.unwrap();
    let held = if contended { Some(env.client().await) } else { None };
    let held = match &held {
        Some(other) => Some(other.lock(name).lock().await.unwrap()),
        None => None,
    };
    let before = proxy.forwarded();
    if let Some(bytes) = bytes {
        proxy.cut_after(bytes);
    }
    let acquired = acquiring(env, &client, name);
    if let Some(held) = held {
        until_waiting(env, name, 1).await;
        let token = held.token();
        held.release().await.unwrap();
        let guard = env.soon("the waiter", acquired).await.unwrap();
        assert!(guard.token() > token);
        assert_eq!(waiting(env, name), 0);
        assert_holds(env, &guard);
        guard.release().await.unwrap();
    } else {
        let guard = env.soon("the lock", acquired).await.unwrap();
        assert_holds(env, &guard);
        assert_eq!(fence(env, name), Some(guard.token().get()), "one token was reserved");
        guard.release().await.unwrap();
    }
    assert!(is_free(env, name), "cut after {bytes:?}");
    assert_eq!(waiting(env, name), 0, "cut after {bytes:?}");
    proxy.forwarded() - before
}

async fn at_any_byte(env: &Env, contended: bool) {
    let whole = cut_after(env, "whole", None, contended).await;
    let cuts: BTreeSet<u64> = (0..40).map(|n| n * whole / 39).collect();
    // Several at a time, because most of the time is waiting.
    for cuts in cuts.into_iter().collect::<Vec<_>>().chunks(10) {
        join_all(cuts.iter().map(async |bytes| {
            cut_after(env, &format!("cut after {bytes}"), Some(*bytes), contended).await;
        }))
        .await;
    }
}

async fn a_connection_may_be_cut_at_any_byte(env: Env) {
    at_any_byte(&env, false).await;
}

async fn a_waiter_may_be_cut_off_at_any_byte(env: Env) {
    at_any_byte(&env, true).await;
}

async fn swallowed_replies_are_made_up_for(env: Env) {
    let proxy = Proxy::start(env.server().port());
    let client = env.client_at(&proxy.url(), |config| config.command_timeout(ms(500)).lease(ms(4000))).await.unwrap();
    let kept = client.lock("kept").lock().await.unwrap();
    let released = client.lock("released").lock().await.unwrap();
    proxy.drop_replies(true);
    let acquired = acquiring(&env, &client, "a");
    let released = env.spawn(released.release());
    env.eventually("it is executed", async || !is_free(&env, "a") && is_free(&env, "released")).await;
    env.sleep(ms(600)).await;
    proxy.drop_replies(false);
    let guard = env.soon("the lock", acquired).await.unwrap();
    assert_holds(&env, &guard);
    assert_eq!(fence(&env, "a"), Some(guard.token().get()), "one token was reserved");
    env.soon("the release", released).await.unwrap();
    let renewals = client.counts.of("lock_renew");
    env.eventually("a renewal", async || client.counts.of("lock_renew") > renewals).await;
    assert_holds(&env, &kept);
    guard.release().await.unwrap();
    kept.release().await.unwrap();
}

/// The server counts a receiver, the message is lost behind it, and no connection breaks.
async fn a_message_swallowed_on_the_way_is_made_up_for(env: Env) {
    let other = env.client().await;
    let proxy = Proxy::start(env.server().port());
    let ttl = ms(2400);
    let client = env.client_at(&proxy.url(), |config| config.lease(ttl)).await.unwrap();
    let held = other.lock("a").lock().await.unwrap();
    let waiter = acquiring(&env, &client, "a");
    env.eventually("it waits", async || waiting(&env, "a") == 1 && client.counts.total() == 1).await;
    env.sleep(ms(50)).await;
    proxy.drop_replies(true);
    let start = env.now();
    held.release().await.unwrap();
    assert!(!is_free(&env, "a"), "granted, as far as the server knows");
    env.sleep(ms(50)).await;
    proxy.drop_replies(false);
    let guard = env.soon("the waiter", waiter).await.unwrap();
    assert!(env.now() - start < ttl, "only when the grant had expired");
    assert_holds(&env, &guard);
    guard.release().await.unwrap();
}

/// What was stalled arrives when its sender has given up long ago.
async fn requests_that_were_stalled_do_no_harm(env: Env) {
    let other = env.client().await;
    let proxy = Proxy::start(env.server().port());
    let lease = ms(3000);
    let client = env
        .client_at(&proxy.url(), |config| config.command_timeout(ms(1500)).lease(lease).retry_timeout(ms(1000)))
        .await
        .unwrap();
    let lock = client.lock("a");
    proxy.stall(true);
    let error = lock.lock().timeout(ms(200)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!(lock.try_lock().await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(lock.lock().await.unwrap_err().kind(), ErrorKind::Unavailable);
    let held = other.lock("a").lock().await.unwrap();
    proxy.stall(false);
    let start = env.now();
    // Late copies of requests may have queued up for at most one lease.
    env.eventually("no ghost waits", async || {
        let state = other.lock("a").inspect().await.unwrap();
        state.waiters == 0
    })
    .await;
    assert!(env.now() - start < lease + SLACK);
    assert_holds(&env, &held);
    held.release().await.unwrap();
    until_free(&env, "a").await;
    // Reconnecting may take longer than the retry timeout.
    env.eventually("it can lock again", async || match lock.try_lock().await {
        Ok(guard) => guard.is_some(),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            false
        }
    })
    .await;
}
