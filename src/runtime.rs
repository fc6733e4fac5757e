//! The runtime as bowline sees it: tasks, timers and a clock.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, Either, select};

use crate::error::Result;
#[cfg(any(feature = "tokio", feature = "smol", feature = "async-std"))]
use crate::error::{Error, ErrorKind};

#[cfg(feature = "async-std")]
pub mod async_std;
#[cfg(feature = "smol")]
pub mod smol;
#[cfg(feature = "tokio")]
pub mod tokio;

/// An async runtime: where bowline spawns its tasks, sets its timers and reads its clock.
///
/// Nothing in bowline spawns, sleeps or asks for the time in any other way, so an implementation of this trait
/// decides what "later" means for the whole library, up to a simulation in virtual time.
///
/// No method is `async`, because a task and a timer outlive the borrow of the executor; the futures are
/// [`BoxFuture`](crate::BoxFuture)s, which this crate re-exports. `examples/custom_executor.rs` is an implementation.
///
/// # Contract
/// - Every method may be called from any thread, inside or outside the runtime.
/// - Once the runtime is shut down, `spawn` drops the task and `sleep` resolves early, but never in the poll in which it
///   is polled first: a loop around it must give the runtime the pause in which it can drop the loop. Neither panics.
/// - `now` and `sleep` use the same clock: after `sleep(d)`, `now` has advanced by at least `d`.
pub trait Executor: fmt::Debug + Send + Sync + 'static {
    /// Runs `task` in the background until it is done. Nobody waits for it.
    fn spawn(&self, task: BoxFuture<'static, ()>);

    /// A future that resolves once `duration` has passed, counted from this call.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;

    /// The monotonic clock.
    fn now(&self) -> Instant;

    /// Runs `future` to its end on the calling thread, which must be one that may block.
    ///
    /// # Errors
    /// - [`Closed`](crate::ErrorKind::Closed) when the runtime is shut down before `future` is done.
    /// - [`InvalidInput`](crate::ErrorKind::InvalidInput) on a thread that drives async tasks, where blocking could stop
    ///   the runtime; `future` is dropped unpolled. An adapter whose runtime cannot tell may leave it to the caller.
    fn block_on(&self, future: BoxFuture<'_, ()>) -> Result<()>;
}

/// A shared executor is one, too.
impl<E: Executor + ?Sized> Executor for Arc<E> {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        (**self).spawn(task);
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        (**self).sleep(duration)
    }

    fn now(&self) -> Instant {
        (**self).now()
    }

    fn block_on(&self, future: BoxFuture<'_, ()>) -> Result<()> {
        (**self).block_on(future)
    }
}

/// The error of `block_on` on a thread that drives async tasks.
#[cfg(any(feature = "tokio", feature = "smol", feature = "async-std"))]
fn must_not_block(instead: &str) -> Error {
    let reason = format!("blocking on a thread that drives async tasks; use {instead}, or the async API");
    Error::because(ErrorKind::InvalidInput, "block_on", reason)
}

/// For tests of what counts time by itself: any instant will do.
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "only differences count")]
pub(crate) fn an_instant() -> Instant {
    Instant::now()
}

/// Lets others run: ready at the second poll.
#[cfg(any(feature = "_redis", feature = "embedded"))]
pub(crate) async fn yield_once() {
    let mut yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return std::task::Poll::Ready(());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

/// `future`, or `None` once `duration` has passed. A future that is ready wins over a timer that is.
pub(crate) async fn timeout<F: Future>(
    executor: &Arc<dyn Executor>,
    duration: Duration,
    future: F,
) -> Option<F::Output> {
    let future = pin!(future);
    match select(future, executor.sleep(duration)).await {
        Either::Left((output, _)) => Some(output),
        Either::Right(_) => None,
    }
}
