//! The trait of async runtimes: tasks, timers and a clock.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;

use crate::error::Result;
#[cfg(any(feature = "tokio", feature = "smol", feature = "async-std", feature = "threads"))]
use crate::error::{Error, ErrorKind};

#[cfg(any(feature = "smol", feature = "async-std"))]
mod async_io;
#[cfg(feature = "async-std")]
pub mod async_std;
#[cfg(any(feature = "tokio", feature = "smol", feature = "async-std", feature = "threads"))]
mod clock;
#[cfg(feature = "smol")]
pub mod smol;
#[cfg(test)]
pub(crate) mod still;
#[cfg(test)]
mod tests;
#[cfg(feature = "threads")]
pub mod threads;
#[cfg(feature = "tokio")]
pub mod tokio;

/// An async runtime. It spawns bowline's tasks, runs its timers and provides its clock.
///
/// bowline spawns, sleeps and reads the time only through this trait. An implementation can therefore run the whole
/// library in virtual time, as a simulation does.
///
/// No method is `async`, because tasks and timers outlive the borrow of the executor. The methods use
/// [`BoxFuture`](crate::BoxFuture), which this crate re-exports. See `examples/custom_executor.rs` for an
/// implementation, and `bowline::testing::check_executor` (feature `testing`) for a check of the contract.
///
/// # Contract
/// - Every method may be called on any thread, inside and outside the runtime.
/// - `now` and `sleep` use the same clock: after `sleep(d)`, `now` has advanced by at least `d`.
/// - After the runtime is shut down, `spawn` drops the task and `sleep` resolves early. Neither panics. `sleep` must
///   not resolve in its first poll then, so that the runtime can drop a task that sleeps in a loop.
pub trait Executor: fmt::Debug + Send + Sync + 'static {
    /// Runs `task` in the background until it is done.
    fn spawn(&self, task: BoxFuture<'static, ()>);

    /// Returns a future that resolves after `duration`, counted from this call.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;

    /// The time of a monotonic clock. Leases are counted by it, so it should go on while the machine is suspended.
    /// `Instant::now()` does not on Linux; the executors of this crate do.
    fn now(&self) -> Instant;

    /// Blocks the calling thread until `future` is done. The thread must be one that may block.
    ///
    /// # Errors
    /// - [`Closed`](crate::ErrorKind::Closed): the runtime was shut down before `future` was done.
    /// - [`InvalidInput`](crate::ErrorKind::InvalidInput): the thread drives async tasks, so blocking could stop the
    ///   runtime. `future` is dropped without a poll. An implementation may skip this check if its runtime cannot
    ///   recognise such threads.
    fn block_on(&self, future: BoxFuture<'_, ()>) -> Result<()>;
}

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

/// The error of `block_on` on a thread that drives async tasks. `instead` says what to do.
#[cfg(any(feature = "tokio", feature = "smol", feature = "async-std", feature = "threads"))]
fn must_not_block(instead: &str) -> Error {
    let reason = format!("this thread drives async tasks and must not block; use {instead} or the async API");
    Error::because(ErrorKind::InvalidInput, "block_on", reason)
}

/// An arbitrary instant, for tests of code that takes the time as an argument.
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests use differences only")]
pub(crate) fn an_instant() -> Instant {
    Instant::now()
}

/// Lets other tasks run once: it is ready at the second poll.
pub(crate) async fn yield_once() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Runs `future` for at most `duration`. `None` if the time passed first. If both are ready, the output is returned.
pub(crate) async fn timeout<F: Future>(
    executor: &Arc<dyn Executor>,
    duration: Duration,
    future: F,
) -> Option<F::Output> {
    let mut future = pin!(future);
    // Most are ready at once, and need no timer.
    let mut sleep = None;
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => {
            let sleep = sleep.get_or_insert_with(|| executor.sleep(duration));
            sleep.as_mut().poll(context).map(|()| None)
        }
    })
    .await
}
