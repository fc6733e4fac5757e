//! The count-down latch.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use super::thread::block;
use crate::{Executor, LatchState, LatchWait, Result};

/// A named count for blocking code to count down and wait for. Guarantees are those of
/// [`bowline::CountDownLatch`](crate::CountDownLatch).
#[derive(Clone, Debug)]
pub struct CountDownLatch {
    inner: crate::CountDownLatch,
    executor: Arc<dyn Executor>,
}

impl CountDownLatch {
    pub(super) fn new(inner: crate::CountDownLatch, executor: Arc<dyn Executor>) -> Self {
        Self { inner, executor }
    }

    /// Sets the count: see [`bowline::CountDownLatch::try_set`](crate::CountDownLatch::try_set).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn try_set(&self, count: u32, ttl: Duration) -> Result<bool> {
        block(&self.executor, "try_set", Box::pin(self.inner.try_set(count, ttl)))
    }

    /// Counts down by one: see [`bowline::CountDownLatch::count_down`](crate::CountDownLatch::count_down).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn count_down(&self) -> Result<u64> {
        block(&self.executor, "count_down", Box::pin(self.inner.count_down()))
    }

    /// Reads the count: see [`bowline::CountDownLatch::count`](crate::CountDownLatch::count).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn count(&self) -> Result<u64> {
        block(&self.executor, "count", Box::pin(self.inner.count()))
    }

    /// Waits until the count is zero: see [`bowline::CountDownLatch::wait`](crate::CountDownLatch::wait). Call
    /// [`block`](LatchWait::block) on the result.
    pub fn wait(&self) -> LatchWait {
        self.inner.wait()
    }

    /// Reads the state of the latch: see [`bowline::CountDownLatch::inspect`](crate::CountDownLatch::inspect).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn inspect(&self) -> Result<LatchState> {
        block(&self.executor, "inspect", Box::pin(self.inner.inspect()))
    }

    /// Ends the latch: see [`bowline::CountDownLatch::delete`](crate::CountDownLatch::delete).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn delete(&self) -> Result<bool> {
        block(&self.executor, "delete", Box::pin(self.inner.delete()))
    }
}

impl LatchWait {
    /// Blocks the thread until the latch is open or the wait fails.
    ///
    /// # Errors
    /// Those of [`LatchWait`], and [those of blocking](crate::blocking).
    pub fn block(self) -> Result<()> {
        let executor = self.executor().clone();
        block(&executor, "wait", self.into_future())
    }
}
