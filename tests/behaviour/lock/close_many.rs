//! Closing a client with thousands of waiters of one name: each has one ticket to cancel, in what order is a unit test
//! of the engine.

use std::future::poll_fn;
use std::task::Poll;

use futures::future::BoxFuture;

use super::queued;
use crate::support::env::{Env, on_every_server};

on_every_server! {
    closing_with_thousands_of_waiters_leaves_nothing,
}

type Waiting = BoxFuture<'static, bowline::Result<bowline::LockGuard>>;

/// So many waiters of one client, each polled until it waits.
async fn waiting(env: &Env, client: &bowline::Client, other: &bowline::Client, waiters: usize) -> Vec<Waiting> {
    let mut waiting: Vec<Waiting> = (0..waiters)
        .map(|_| {
            let lock = client.lock("a");
            let waits: Waiting = Box::pin(async move { lock.lock().await });
            waits
        })
        .collect();
    for waiting in &mut waiting {
        poll_fn(|context| {
            assert!(waiting.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        env.yield_now().await;
    }
    queued(env, &other.lock("a"), waiters as u64).await;
    waiting
}

async fn closing_with_thousands_of_waiters_leaves_nothing(env: Env) {
    const WAITERS: usize = 3_000;
    let (client, other) = (env.client().await, env.client().await);
    let held = other.lock("a").lock().await.unwrap();
    let waiting = waiting(&env, &client, &other, WAITERS).await;
    let behind = super::waiter(&env, &other.lock("a")).await;
    client.close().await;
    assert_eq!(other.lock("a").inspect().await.unwrap().waiters, 1);
    assert_eq!(client.counts.of("lock_cancel"), WAITERS as u64);
    held.release().await.unwrap();
    env.soon("the waiter of another client", behind).await.release().await.unwrap();
    drop(waiting);
}
