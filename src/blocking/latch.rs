//! The count-down latch.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use super::block;
use crate::{Executor, LatchState, Result};

/// As [`bowline::CountDownLatch`](crate::CountDownLatch), for code that is not async.
#[derive(Clone, Debug)]
pub struct CountDownLatch {
    inner: crate::CountDownLatch,
    executor: Arc<dyn Executor>,
}

impl CountDownLatch {
    pub(super) fn new(inner: crate::CountDownLatch, executor: Arc<dyn Executor>) -> Self {
        Self { inner, executor }
    }

    /// See [`bowline::CountDownLatch::try_set`](crate::CountDownLatch::try_set).
    ///
    /// # Errors
    /// As there, and of a thread that may not block.
    pub fn try_set(&self, count: u32, ttl: Duration) -> Result<bool> {
        block(&self.executor, "try_set", Box::pin(self.inner.try_set(count, ttl)))
    }

    /// See [`bowline::CountDownLatch::count_down`](crate::CountDownLatch::count_down).
    ///
    /// # Errors
    /// As there, and of a thread that may not block.
    pub fn count_down(&self) -> Result<u64> {
        block(&self.executor, "count_down", Box::pin(self.inner.count_down()))
    }

    /// See [`bowline::CountDownLatch::count`](crate::CountDownLatch::count).
    ///
    /// # Errors
    /// As there, and of a thread that may not block.
    pub fn count(&self) -> Result<u64> {
        block(&self.executor, "count", Box::pin(self.inner.count()))
    }

    /// Waits until the latch is open: see [`bowline::CountDownLatch::wait`](crate::CountDownLatch::wait).
    pub fn wait(&self) -> LatchWait {
        LatchWait { inner: self.inner.wait(), executor: self.executor.clone() }
    }

    /// See [`bowline::CountDownLatch::inspect`](crate::CountDownLatch::inspect).
    ///
    /// # Errors
    /// As there, and of a thread that may not block.
    pub fn inspect(&self) -> Result<LatchState> {
        block(&self.executor, "inspect", Box::pin(self.inner.inspect()))
    }

    /// See [`bowline::CountDownLatch::delete`](crate::CountDownLatch::delete).
    ///
    /// # Errors
    /// As there, and of a thread that may not block.
    pub fn delete(&self) -> Result<bool> {
        block(&self.executor, "delete", Box::pin(self.inner.delete()))
    }
}

/// A wait for a latch: see [`CountDownLatch::wait`].
#[derive(Clone, Debug)]
#[must_use = "a wait does nothing until `block` is called"]
pub struct LatchWait {
    inner: crate::LatchWait,
    executor: Arc<dyn Executor>,
}

impl LatchWait {
    /// The longest wait: see [`bowline::LatchWait::timeout`](crate::LatchWait::timeout).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.inner = self.inner.timeout(timeout);
        self
    }

    /// Waits.
    ///
    /// # Errors
    /// As [`bowline::LatchWait`](crate::LatchWait), and of a thread that may not block.
    pub fn block(self) -> Result<()> {
        block(&self.executor, "wait", self.inner.into_future())
    }
}
