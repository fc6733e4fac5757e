//! What is true of the lock, with futures and through the blocking facade (`lab`).

mod close;
pub(crate) mod cohort;
mod cohort_lost;
mod counts;
mod exclusion;
mod extend;
mod holder;
mod input;
mod keep;
mod lease;
mod operator;
mod queue;
mod retained;
mod wrong_type;

// Tests that need futures: polled by hand, dropped half-way, or nested.
pub(crate) mod cancel;
mod cancel_others;
mod client_scope;
mod close_many;
mod cohort_left;
mod embedded;
mod held;
mod identity;
mod left_alone;
mod many;
mod protect;
mod run;
mod scope;

use std::time::Duration;

use futures::future::BoxFuture;

use crate::lab::{Lock, LockGuard};
use crate::support::env::Env as AsyncEnv;

pub(crate) const LONG: Duration = Duration::from_secs(20);

/// Waits until as many acquisitions wait for the lock.
pub(crate) async fn queued(env: &AsyncEnv, lock: &(impl Clone + Into<Lock>), waiters: u64) {
    let lock: Lock = lock.clone().into();
    env.eventually(&format!("{waiters} waiters"), async || lock.inspect().await.unwrap().waiters == waiters).await;
}

/// A task that waits for the lock, once its place in the queue is known.
pub(crate) async fn waiter(env: &AsyncEnv, lock: &(impl Clone + Into<Lock>)) -> BoxFuture<'static, LockGuard> {
    let lock: Lock = lock.clone().into();
    let waiters = lock.inspect().await.unwrap().waiters;
    let guard = env.spawn({
        let lock = lock.clone();
        async move { lock.lock().timeout(LONG).await.unwrap() }
    });
    queued(env, &lock, waiters + 1).await;
    guard
}

/// Waits for the lock once. With sharded messages, a client that waits in a slot for the first time may be passed over
/// until its inbox there is open. Afterwards the inbox stays open for a minute, and the client's waiters are granted in
/// their turn.
pub(crate) async fn wait_once(env: &AsyncEnv, holder: &(impl Clone + Into<Lock>), lock: &(impl Clone + Into<Lock>)) {
    let holder: Lock = holder.clone().into();
    let held = holder.lock().await.unwrap();
    let waiting = waiter(env, lock).await;
    held.release().await.unwrap();
    env.soon("it is served", waiting).await.release().await.unwrap();
}

/// The lock is free, and no ticket would have to expire first.
pub(crate) async fn free_at_once(env: &AsyncEnv, lock: &(impl Clone + Into<Lock>)) {
    let lock: Lock = lock.clone().into();
    let guard = env.soon("the lock is free", lock.lock()).await.unwrap();
    guard.release().await.unwrap();
    env.eventually("nothing is left", async || env.keys().is_empty()).await;
}
