//! The double barrier.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use super::thread::block;
use crate::runtime::timeout;
use crate::{DoubleBarrierState, Enter, Error, Executor, Inside, Leave, Result};

/// A named section that threads begin together and end together. Guarantees are those of
/// [`bowline::DoubleBarrier`](crate::DoubleBarrier).
#[derive(Clone, Debug)]
pub struct DoubleBarrier {
    inner: crate::DoubleBarrier,
    executor: Arc<dyn Executor>,
}

impl DoubleBarrier {
    pub(super) fn new(inner: crate::DoubleBarrier, executor: Arc<dyn Executor>) -> Self {
        Self { inner, executor }
    }

    /// Comes, and waits for the others: see [`bowline::DoubleBarrier::enter`](crate::DoubleBarrier::enter). Call
    /// [`block`](Enter::block) on the result.
    pub fn enter(&self) -> Enter {
        self.inner.enter()
    }

    /// Reads who is there: see [`bowline::DoubleBarrier::inspect`](crate::DoubleBarrier::inspect).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn inspect(&self) -> Result<DoubleBarrierState> {
        block(&self.executor, "inspect", Box::pin(self.inner.inspect()))
    }

    /// Breaks the generation: see [`bowline::DoubleBarrier::reset`](crate::DoubleBarrier::reset).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn reset(&self) -> Result<bool> {
        block(&self.executor, "reset", Box::pin(self.inner.reset()))
    }
}

impl Enter {
    /// Blocks the thread until all parties have come or the wait fails.
    ///
    /// # Errors
    /// Those of [`Enter`], and [those of blocking](crate::blocking).
    pub fn block(self) -> Result<Inside> {
        let executor = self.executor().clone();
        block(&executor, "enter", self.into_future())
    }
}

impl Inside {
    /// Blocks until the generation is broken, for at most `duration`, and returns the reason: see
    /// [`broken`](Self::broken). `None`: it was not broken in that time.
    ///
    /// # Errors
    /// [Those of blocking](crate::blocking).
    pub fn block_until_broken(&self, duration: Duration) -> Result<Option<Error>> {
        let executor = self.executor();
        block(executor, "broken", Box::pin(async { Ok(timeout(executor, duration, self.broken()).await) }))
    }
}

impl Leave {
    /// Blocks the thread until all parties are ready to leave or the wait fails.
    ///
    /// # Errors
    /// Those of [`Leave`], and [those of blocking](crate::blocking).
    pub fn block(self) -> Result<()> {
        let executor = self.executor().clone();
        block(&executor, "leave", self.into_future())
    }
}
