//! The choices of one acquisition.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::guard::Guard;
use super::{AnyThread, ThisThread, block};
use crate::run::covered;
use crate::{Executor, Held, Holder, Reentrant, Result};

/// An acquisition: as [`bowline::Acquire`](crate::Acquire), whose guard is `G`. Nothing is sent before
/// [`block`](Self::block). `T` is that of the [`Guard`]: an acquisition for the thread stays on it, as its guard does.
#[must_use = "an acquisition does nothing until `block` is called"]
pub struct Acquire<G = crate::LockGuard, T = ThisThread> {
    executor: Arc<dyn Executor>,
    inner: crate::Acquire<G>,
    threads: PhantomData<T>,
}

/// An attempt to acquire: as [`bowline::TryAcquire`](crate::TryAcquire), whose guard is `G`. Nothing is sent before
/// [`block`](Self::block). `T` as for [`Acquire`].
#[must_use = "an acquisition does nothing until `block` is called"]
pub struct TryAcquire<G = crate::LockGuard, T = ThisThread> {
    executor: Arc<dyn Executor>,
    inner: crate::TryAcquire<G>,
    threads: PhantomData<T>,
}

impl<G, T> Acquire<G, T> {
    pub(super) fn new(executor: Arc<dyn Executor>, inner: crate::Acquire<G>) -> Self {
        Self { executor, inner, threads: PhantomData }
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

    /// See [`bowline::Acquire::expires_after`](crate::Acquire::expires_after).
    pub fn expires_after(mut self, lease: Duration) -> Self {
        self.inner = self.inner.expires_after(lease);
        self
    }

    /// See [`bowline::Acquire::hold_at_most`](crate::Acquire::hold_at_most).
    pub fn hold_at_most(mut self, limit: Duration) -> Self {
        self.inner = self.inner.hold_at_most(limit);
        self
    }

    /// See [`bowline::Acquire::max_waiters`](crate::Acquire::max_waiters).
    pub fn max_waiters(mut self, limit: u32) -> Self {
        self.inner = self.inner.max_waiters(limit);
        self
    }
}

impl<G: Reentrant, T> Acquire<G, T> {
    /// Acquires for this holder instead of the thread's own: the guard may be sent to other threads.
    pub fn holder(self, holder: &Holder) -> Acquire<G, AnyThread> {
        Acquire::new(self.executor, self.inner.holder(holder))
    }
}

impl<G: Held, T> Acquire<G, T> {
    /// Acquires, and blocks until it is done.
    ///
    /// # Errors
    /// As [`bowline::Acquire`](crate::Acquire), and [`InvalidInput`](crate::ErrorKind::InvalidInput) on a thread that
    /// drives async tasks.
    pub fn block(self) -> Result<Guard<G, T>> {
        let guard = block(&self.executor, "acquire", self.inner.into_future())?;
        Ok(Guard::new(guard, &self.executor))
    }

    /// Acquires, calls `work` with the guard, and releases, whatever becomes of the work: see
    /// [`bowline::Acquire::run`](crate::Acquire::run). Code that does not await cannot be stopped: work that takes long
    /// should ask [`is_valid`](Guard::is_valid) before each step.
    ///
    /// # Errors
    /// As there, and [`InvalidInput`](crate::ErrorKind::InvalidInput) on a thread that drives async tasks.
    pub fn run<O>(self, work: impl FnOnce(&Guard<G, T>) -> O) -> Result<O> {
        run(self.block()?, work)
    }
}

impl<G, T> TryAcquire<G, T> {
    pub(super) fn new(executor: Arc<dyn Executor>, inner: crate::TryAcquire<G>) -> Self {
        Self { executor, inner, threads: PhantomData }
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

    /// See [`bowline::TryAcquire::expires_after`](crate::TryAcquire::expires_after).
    pub fn expires_after(mut self, lease: Duration) -> Self {
        self.inner = self.inner.expires_after(lease);
        self
    }

    /// See [`bowline::TryAcquire::hold_at_most`](crate::TryAcquire::hold_at_most).
    pub fn hold_at_most(mut self, limit: Duration) -> Self {
        self.inner = self.inner.hold_at_most(limit);
        self
    }
}

impl<G: Reentrant, T> TryAcquire<G, T> {
    /// See [`Acquire::holder`].
    pub fn holder(self, holder: &Holder) -> TryAcquire<G, AnyThread> {
        TryAcquire::new(self.executor, self.inner.holder(holder))
    }
}

impl<G: Held, T> TryAcquire<G, T> {
    /// Asks, and blocks until there is an answer. `None`: somebody is in the way, or waits already.
    ///
    /// # Errors
    /// As [`bowline::TryAcquire`](crate::TryAcquire), and [`InvalidInput`](crate::ErrorKind::InvalidInput) on a thread that
    /// drives async tasks.
    pub fn block(self) -> Result<Option<Guard<G, T>>> {
        let guard = block(&self.executor, "try_acquire", self.inner.into_future())?;
        Ok(guard.map(|guard| Guard::new(guard, &self.executor)))
    }

    /// As [`Acquire::run`]. `None`: nothing was acquired, and `work` was not called.
    ///
    /// # Errors
    /// As [`Acquire::run`].
    pub fn run<O>(self, work: impl FnOnce(&Guard<G, T>) -> O) -> Result<Option<O>> {
        self.block()?.map(|guard| run(guard, work)).transpose()
    }
}

fn run<G: Held, T, O>(guard: Guard<G, T>, work: impl FnOnce(&Guard<G, T>) -> O) -> Result<O> {
    let worked = catch_unwind(AssertUnwindSafe(|| work(&guard)));
    let released = guard.release();
    match worked {
        Ok(output) => covered(released).map(|()| output),
        Err(panic) => resume_unwind(panic),
    }
}

impl<G, T> fmt::Debug for Acquire<G, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<G, T> fmt::Debug for TryAcquire<G, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
