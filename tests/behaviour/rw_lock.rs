//! What is true of the read-write lock, with futures and through the blocking facade (`lab`).

mod change;
mod counts;
mod exclusion;
mod holder;
mod queue;
mod retained;
mod upgrade;

// Tests that need futures: dropped half-way, or nested.
mod cancel;
mod cohort;
mod scope;

use std::time::Duration;

use bowline::Token;
use futures::future::BoxFuture;

use crate::lab::{ReadGuard, RwLock, WriteGuard};
use crate::support::env::Env as AsyncEnv;

pub(crate) const LONG: Duration = Duration::from_secs(20);

/// Waits until as many acquisitions wait for the lock.
pub(crate) async fn queued(env: &AsyncEnv, lock: &(impl Clone + Into<RwLock>), waiters: u64) {
    let lock: RwLock = lock.clone().into();
    env.eventually(&format!("{waiters} waiters"), async || lock.inspect().await.unwrap().waiters == waiters).await;
}

/// A task that waits to read, once its place in the queue is known.
pub(crate) async fn reader(env: &AsyncEnv, lock: &(impl Clone + Into<RwLock>)) -> BoxFuture<'static, ReadGuard> {
    let lock: RwLock = lock.clone().into();
    let waiters = lock.inspect().await.unwrap().waiters;
    let guard = env.spawn({
        let lock = lock.clone();
        async move { lock.read().timeout(LONG).await.unwrap() }
    });
    queued(env, &lock, waiters + 1).await;
    guard
}

/// A task that waits to write, once its place in the queue is known.
pub(crate) async fn writer(env: &AsyncEnv, lock: &(impl Clone + Into<RwLock>)) -> BoxFuture<'static, WriteGuard> {
    let lock: RwLock = lock.clone().into();
    let waiters = lock.inspect().await.unwrap().waiters;
    let guard = env.spawn({
        let lock = lock.clone();
        async move { lock.write().timeout(LONG).await.unwrap() }
    });
    queued(env, &lock, waiters + 1).await;
    guard
}

/// The grant of a writer reserves as many tokens.
pub(crate) const SPAN: u64 = 32;

/// It has one of the tokens that were reserved by the writer with that token, and no larger one of its.
pub(crate) fn reads_after(reader: &ReadGuard, writer: Token) -> bool {
    (writer.get()..writer.get() + SPAN).contains(&reader.token().get())
}

/// The lock is free for a writer, and nothing stays that would have to expire first.
pub(crate) async fn free_at_once(env: &AsyncEnv, lock: &(impl Clone + Into<RwLock>)) {
    let lock: RwLock = lock.clone().into();
    env.soon("the lock is free", lock.write()).await.unwrap().release().await.unwrap();
    env.eventually("nothing is left", async || env.keys().is_empty()).await;
}
