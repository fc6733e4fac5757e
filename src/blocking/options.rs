//! The choices of one acquisition.

use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use super::block;
use super::guard::{Guard, Held};
use crate::{Executor, Holder, Reentrant, Result};

/// An acquisition: as [`bowline::Acquire`](crate::Acquire), whose guard is `G`. Nothing is sent before
/// [`block`](Self::block).
#[must_use = "an acquisition does nothing until `block` is called"]
pub struct Acquire<'a, G = crate::LockGuard> {
    executor: &'a Arc<dyn Executor>,
    inner: crate::Acquire<'a, G>,
}

/// An attempt to acquire: as [`bowline::TryAcquire`](crate::TryAcquire), whose guard is `G`. Nothing is sent before
/// [`block`](Self::block).
#[must_use = "an acquisition does nothing until `block` is called"]
pub struct TryAcquire<'a, G = crate::LockGuard> {
    executor: &'a Arc<dyn Executor>,
    inner: crate::TryAcquire<'a, G>,
}

impl<'a, G> Acquire<'a, G> {
    pub(super) fn new(executor: &'a Arc<dyn Executor>, inner: crate::Acquire<'a, G>) -> Self {
        Self { executor, inner }
    }

    /// See [`bowline::Acquire::fair`](crate::Acquire::fair).
    pub fn fair(mut self) -> Self {
        self.inner = self.inner.fair();
        self
    }

    /// See [`bowline::Acquire::non_fair`](crate::Acquire::non_fair).
    pub fn non_fair(mut self) -> Self {
        self.inner = self.inner.non_fair();
        self
    }

    /// See [`bowline::Acquire::timeout`](crate::Acquire::timeout).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.inner = self.inner.timeout(timeout);
        self
    }

    /// See [`bowline::Acquire::lease`](crate::Acquire::lease).
    pub fn lease(mut self, lease: Duration) -> Self {
        self.inner = self.inner.lease(lease);
        self
    }

    /// See [`bowline::Acquire::max_waiters`](crate::Acquire::max_waiters).
    pub fn max_waiters(mut self, limit: u32) -> Self {
        self.inner = self.inner.max_waiters(limit);
        self
    }
}

impl<G: Reentrant> Acquire<'_, G> {
    /// Acquires for this holder instead of the thread's own.
    pub fn holder(mut self, holder: &Holder) -> Self {
        self.inner = self.inner.holder(holder);
        self
    }
}

impl<'a, G: Held + 'a> Acquire<'a, G> {
    /// Acquires, and blocks until it is done.
    ///
    /// # Errors
    /// As [`bowline::Acquire`](crate::Acquire), and [`InvalidInput`](crate::ErrorKind::InvalidInput) on a thread that
    /// drives async tasks.
    pub fn block(self) -> Result<Guard<G>> {
        let guard = block(self.executor, "acquire", self.inner.into_future())?;
        Ok(Guard::new(guard, self.executor))
    }
}

impl<'a, G> TryAcquire<'a, G> {
    pub(super) fn new(executor: &'a Arc<dyn Executor>, inner: crate::TryAcquire<'a, G>) -> Self {
        Self { executor, inner }
    }

    /// See [`bowline::TryAcquire::timeout`](crate::TryAcquire::timeout).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.inner = self.inner.timeout(timeout);
        self
    }

    /// See [`bowline::TryAcquire::lease`](crate::TryAcquire::lease).
    pub fn lease(mut self, lease: Duration) -> Self {
        self.inner = self.inner.lease(lease);
        self
    }
}

impl<G: Reentrant> TryAcquire<'_, G> {
    /// See [`Acquire::holder`].
    pub fn holder(mut self, holder: &Holder) -> Self {
        self.inner = self.inner.holder(holder);
        self
    }
}

impl<'a, G: Held + 'a> TryAcquire<'a, G> {
    /// Asks, and blocks until there is an answer. `None`: somebody is in the way, or waits already.
    ///
    /// # Errors
    /// As [`bowline::TryAcquire`](crate::TryAcquire), and [`InvalidInput`](crate::ErrorKind::InvalidInput) on a thread that
    /// drives async tasks.
    pub fn block(self) -> Result<Option<Guard<G>>> {
        let guard = block(self.executor, "try_acquire", self.inner.into_future())?;
        Ok(guard.map(|guard| Guard::new(guard, self.executor)))
    }
}

impl<G> fmt::Debug for Acquire<'_, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<G> fmt::Debug for TryAcquire<'_, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
