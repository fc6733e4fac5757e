//! The executor on async-std.

use std::time::{Duration, Instant};

use futures::future::BoxFuture;

use super::{Executor, must_not_block};
use crate::error::Result;

/// Runs bowline on async-std's global executor, which starts when it is first used and never shuts down.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsyncStd;

#[expect(clippy::disallowed_methods, reason = "this is the adapter")]
impl Executor for AsyncStd {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        drop(::async_std::task::spawn(task));
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        // async-std counts from the first poll, `Executor` from the call.
        let called = Instant::now();
        Box::pin(async move { ::async_std::task::sleep(duration.saturating_sub(called.elapsed())).await })
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn block_on(&self, future: BoxFuture<'_, ()>) -> Result<()> {
        // There may be no other thread that drives the tasks that the future waits for.
        if ::async_std::task::try_current().is_some() {
            return Err(must_not_block("async_std::task::spawn_blocking"));
        }
        ::async_std::task::block_on(future);
        Ok(())
    }
}
