//! The cyclic barrier.

use std::future::IntoFuture;
use std::sync::Arc;

use super::thread::block;
use crate::{BarrierPass, BarrierState, BarrierWait, Executor, Result};

/// A named point at which threads wait for each other. Guarantees are those of [`bowline::Barrier`](crate::Barrier).
#[derive(Clone, Debug)]
pub struct Barrier {
    inner: crate::Barrier,
    executor: Arc<dyn Executor>,
}

impl Barrier {
    pub(super) fn new(inner: crate::Barrier, executor: Arc<dyn Executor>) -> Self {
        Self { inner, executor }
    }

    /// Arrives, and waits for the others: see [`bowline::Barrier::wait`](crate::Barrier::wait). Call
    /// [`block`](BarrierWait::block) on the result.
    pub fn wait(&self) -> BarrierWait {
        self.inner.wait()
    }

    /// Reads who waits: see [`bowline::Barrier::inspect`](crate::Barrier::inspect).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn inspect(&self) -> Result<BarrierState> {
        block(&self.executor, "inspect", Box::pin(self.inner.inspect()))
    }

    /// Breaks the generation that waits: see [`bowline::Barrier::reset`](crate::Barrier::reset).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn reset(&self) -> Result<bool> {
        block(&self.executor, "reset", Box::pin(self.inner.reset()))
    }
}

impl BarrierWait {
    /// Blocks the thread until all parties have arrived or the wait fails.
    ///
    /// # Errors
    /// Those of [`BarrierWait`], and [those of blocking](crate::blocking).
    pub fn block(self) -> Result<BarrierPass> {
        let executor = self.executor().clone();
        block(&executor, "wait", self.into_future())
    }
}
