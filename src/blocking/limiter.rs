//! The rate limiter.

use std::future::IntoFuture;
use std::sync::Arc;

use super::thread::block;
use crate::{Decision, Executor, Result, UntilReady};

/// A named rate for blocking code. Guarantees are those of [`bowline::RateLimiter`](crate::RateLimiter).
#[derive(Clone, Debug)]
pub struct RateLimiter {
    inner: crate::RateLimiter,
    executor: Arc<dyn Executor>,
}

impl RateLimiter {
    pub(super) fn new(inner: crate::RateLimiter, executor: Arc<dyn Executor>) -> Self {
        Self { inner, executor }
    }

    /// Takes one permit, if it is free: see [`bowline::RateLimiter::check`](crate::RateLimiter::check).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn check(&self) -> Result<Decision> {
        self.check_n(1)
    }

    /// Takes `cost` permits, if all of them are free: see
    /// [`bowline::RateLimiter::check_n`](crate::RateLimiter::check_n).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn check_n(&self, cost: u32) -> Result<Decision> {
        block(&self.executor, "check", Box::pin(self.inner.check_n(cost)))
    }

    /// Waits until a permit is free: see [`bowline::RateLimiter::until_ready`](crate::RateLimiter::until_ready). Call
    /// [`block`](UntilReady::block) on the result.
    pub fn until_ready(&self) -> UntilReady {
        self.inner.until_ready()
    }

    /// Waits until `cost` permits are free: see
    /// [`bowline::RateLimiter::until_ready_n`](crate::RateLimiter::until_ready_n). Call [`block`](UntilReady::block) on
    /// the result.
    pub fn until_ready_n(&self, cost: u32) -> UntilReady {
        self.inner.until_ready_n(cost)
    }

    /// Reads what [`check`](Self::check) would decide: see
    /// [`bowline::RateLimiter::inspect`](crate::RateLimiter::inspect).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn inspect(&self) -> Result<Decision> {
        block(&self.executor, "inspect", Box::pin(self.inner.inspect()))
    }

    /// Forgets what was taken: see [`bowline::RateLimiter::reset`](crate::RateLimiter::reset).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn reset(&self) -> Result<bool> {
        block(&self.executor, "reset", Box::pin(self.inner.reset()))
    }
}

impl UntilReady {
    /// Blocks the thread until the permits are free or the wait fails.
    ///
    /// # Errors
    /// Those of [`UntilReady`], and [those of blocking](crate::blocking).
    pub fn block(self) -> Result<()> {
        let executor = self.executor().clone();
        block(&executor, "until_ready", self.into_future())
    }
}
