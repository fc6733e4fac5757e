//! What is true of the lock, with futures and through the blocking facade (`tests/facade`).

mod close;
pub(crate) mod cohort;
mod cohort_lost;
mod counts;
mod exclusion;
mod extend;
mod holder;
mod input;
mod lease;
mod operator;
mod queue;
mod wrong_type;

use std::time::Duration;

use bowline::{Lock, LockGuard};
use futures::future::BoxFuture;

use crate::support::env::Env;

pub(crate) const LONG: Duration = Duration::from_secs(20);

/// Waits until as many acquisitions wait for the lock.
pub(crate) async fn queued(env: &Env, lock: &Lock, waiters: u64) {
    env.eventually(&format!("{waiters} waiters"), async || lock.inspect().await.unwrap().waiters == waiters).await;
}

/// A task that waits for the lock, once its place in the queue is known.
pub(crate) async fn waiter(env: &Env, lock: &Lock) -> BoxFuture<'static, LockGuard> {
    let waiters = lock.inspect().await.unwrap().waiters;
    let guard = env.spawn({
        let lock = lock.clone();
        async move { lock.lock().timeout(LONG).await.unwrap() }
    });
    queued(env, lock, waiters + 1).await;
    guard
}

/// The lock is free, and nobody has a claim on it that would have to expire first.
pub(crate) async fn free_at_once(env: &Env, lock: &Lock) {
    let guard = env.soon("the lock is free", lock.lock()).await.unwrap();
    guard.release().await.unwrap();
    env.eventually("nothing is left", async || env.keys().is_empty()).await;
}
