//! The read-write lock against a real server and the embedded one, on every runtime.
#![cfg(any(feature = "tokio", feature = "smol", feature = "async-std"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods, missing_docs)]

mod support;

#[path = "rw_lock/cancel.rs"]
mod cancel;
#[path = "rw_lock/change.rs"]
mod change;
#[path = "rw_lock/counts.rs"]
mod counts;
#[path = "rw_lock/exclusion.rs"]
mod exclusion;
#[path = "rw_lock/holder.rs"]
mod holder;
#[path = "rw_lock/line.rs"]
mod line;
#[path = "rw_lock/queue.rs"]
mod queue;

use std::time::Duration;

use bowline::{ReadGuard, RwLock, Token, WriteGuard};
use futures::future::BoxFuture;
use support::env::Env;

const LONG: Duration = Duration::from_secs(20);

/// Waits until as many acquisitions wait for the lock.
async fn queued(env: &Env, lock: &RwLock, waiters: u64) {
    env.eventually(&format!("{waiters} waiters"), async || lock.inspect().await.unwrap().waiters == waiters).await;
}

/// A task that waits to read, once its place in the queue is known.
async fn reader(env: &Env, lock: &RwLock) -> BoxFuture<'static, ReadGuard> {
    let waiters = lock.inspect().await.unwrap().waiters;
    let guard = env.spawn({
        let lock = lock.clone();
        async move { lock.read().timeout(LONG).await.unwrap() }
    });
    queued(env, lock, waiters + 1).await;
    guard
}

/// A task that waits to write, once its place in the queue is known.
async fn writer(env: &Env, lock: &RwLock) -> BoxFuture<'static, WriteGuard> {
    let waiters = lock.inspect().await.unwrap().waiters;
    let guard = env.spawn({
        let lock = lock.clone();
        async move { lock.write().timeout(LONG).await.unwrap() }
    });
    queued(env, lock, waiters + 1).await;
    guard
}

/// The grant of a writer reserves as many tokens.
const SPAN: u64 = 32;

/// It has one of the tokens that were reserved by the writer with that token, and no larger one of its.
fn reads_after(reader: &ReadGuard, writer: Token) -> bool {
    (writer.get()..writer.get() + SPAN).contains(&reader.token().get())
}

/// The lock is free for a writer, and nothing stays that would have to expire first.
async fn free_at_once(env: &Env, lock: &RwLock) {
    env.soon("the lock is free", lock.write()).await.unwrap().release().await.unwrap();
    env.eventually("nothing is left", async || env.keys().is_empty()).await;
}
