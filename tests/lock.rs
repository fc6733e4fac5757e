//! The lock against a real server and the embedded one, on every runtime.
#![cfg(any(feature = "tokio", feature = "smol", feature = "async-std"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods, missing_docs)]

mod support;

#[path = "lock/cancel.rs"]
mod cancel;
#[path = "lock/cancel_others.rs"]
mod cancel_others;
#[path = "lock/close.rs"]
mod close;
#[path = "lock/counts.rs"]
mod counts;
#[path = "lock/exclusion.rs"]
mod exclusion;
#[path = "lock/holder.rs"]
mod holder;
#[path = "lock/input.rs"]
mod input;
#[path = "lock/lease.rs"]
mod lease;
#[path = "lock/line.rs"]
mod line;
#[path = "lock/line_ends.rs"]
mod line_ends;
#[path = "lock/operator.rs"]
mod operator;
#[path = "lock/queue.rs"]
mod queue;
#[path = "lock/wrong_type.rs"]
mod wrong_type;

use std::time::Duration;

use bowline::{Lock, LockGuard};
use futures::future::BoxFuture;
use support::env::Env;
use support::polled::poll_once;

const LONG: Duration = Duration::from_secs(20);

/// Waits until as many acquisitions wait for the lock.
async fn queued(env: &Env, lock: &Lock, waiters: u64) {
    env.eventually(&format!("{waiters} waiters"), async || lock.inspect().await.unwrap().waiters == waiters).await;
}

/// A task that waits for the lock, once its place in the queue is known.
async fn waiter(env: &Env, lock: &Lock) -> BoxFuture<'static, LockGuard> {
    let waiters = lock.inspect().await.unwrap().waiters;
    let guard = env.spawn({
        let lock = lock.clone();
        async move { lock.lock().timeout(LONG).await.unwrap() }
    });
    queued(env, lock, waiters + 1).await;
    guard
}

/// The lock is free, and nobody has a claim on it that would have to expire first.
async fn free_at_once(env: &Env, lock: &Lock) {
    let guard = env.soon("the lock is free", lock.lock()).await.unwrap();
    guard.release().await.unwrap();
    env.eventually("nothing is left", async || env.keys().is_empty()).await;
}
