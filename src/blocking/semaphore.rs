//! The semaphore.

use std::sync::Arc;

use super::acquire::{Acquire, TryAcquire};
use super::changes::Changes;
use super::guard::Permit;
use super::marker::AnyThread;
use super::thread::block;
use crate::{Executor, HoldChanges, HoldHandle, MergeError, Result, Revoked, SemaphoreState, Whose};

/// A named number of permits for blocking code. Guarantees and fairness are those of
/// [`bowline::Semaphore`](crate::Semaphore).
#[derive(Clone, Debug)]
pub struct Semaphore {
    pub(super) inner: crate::Semaphore,
    executor: Arc<dyn Executor>,
}

impl Semaphore {
    pub(super) fn new(inner: crate::Semaphore, executor: Arc<dyn Executor>) -> Self {
        Self { inner, executor }
    }

    /// Acquires one permit: see [`bowline::Semaphore::acquire`](crate::Semaphore::acquire).
    pub fn acquire(&self) -> Acquire<crate::Permit, AnyThread> {
        self.inner.acquire().with_guard()
    }

    /// Acquires `count` permits at once: see [`bowline::Semaphore::acquire_many`](crate::Semaphore::acquire_many).
    pub fn acquire_many(&self, count: u32) -> Acquire<crate::Permit, AnyThread> {
        self.inner.acquire_many(count).with_guard()
    }

    /// Acquires one permit if it is free: see [`bowline::Semaphore::try_acquire`](crate::Semaphore::try_acquire).
    pub fn try_acquire(&self) -> TryAcquire<crate::Permit, AnyThread> {
        self.inner.try_acquire().with_guard()
    }

    /// Acquires `count` permits if they are free: see
    /// [`bowline::Semaphore::try_acquire_many`](crate::Semaphore::try_acquire_many).
    pub fn try_acquire_many(&self, count: u32) -> TryAcquire<crate::Permit, AnyThread> {
        self.inner.try_acquire_many(count).with_guard()
    }

    /// Acquires all permits that are free: see
    /// [`bowline::Semaphore::try_acquire_all`](crate::Semaphore::try_acquire_all).
    pub fn try_acquire_all(&self) -> TryAcquire<crate::Permit, AnyThread> {
        self.inner.try_acquire_all().with_guard()
    }

    /// Reads how many permits are free: see [`bowline::Semaphore::available`](crate::Semaphore::available).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn available(&self) -> Result<u32> {
        block(&self.executor, "available", Box::pin(self.inner.available()))
    }

    /// Reads who holds permits: see [`bowline::Semaphore::inspect`](crate::Semaphore::inspect).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn inspect(&self) -> Result<SemaphoreState> {
        block(&self.executor, "inspect", Box::pin(self.inner.inspect()))
    }

    /// Reports grants, releases and losses: see [`bowline::Semaphore::changes`](crate::Semaphore::changes).
    pub fn changes(&self) -> Changes<HoldChanges> {
        Changes::new(self.inner.changes(), &self.executor)
    }

    /// Stores a limit in Redis: see [`bowline::Semaphore::set_limit`](crate::Semaphore::set_limit).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn set_limit(&self, limit: u32) -> Result<()> {
        block(&self.executor, "set_limit", Box::pin(self.inner.set_limit(limit)))
    }

    /// Takes over permits that another program has left: see
    /// [`bowline::Semaphore::resume`](crate::Semaphore::resume).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn resume(&self, handle: &HoldHandle) -> Result<Permit> {
        let resumed = block(&self.executor, "resume", Box::pin(self.inner.resume(handle)))?;
        Ok(Permit::new(resumed, &self.executor))
    }

    /// Takes permits from their holders: see [`bowline::Semaphore::force_release`](crate::Semaphore::force_release).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn force_release(&self, whose: Whose) -> Result<Revoked> {
        block(&self.executor, "force_release", Box::pin(self.inner.force_release(whose)))
    }

    /// Takes acquisitions that wait out of the queue: see [`bowline::Lock::drop_waiters`](crate::Lock::drop_waiters).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn drop_waiters(&self, whose: Whose) -> Result<u64> {
        block(&self.executor, "drop_waiters", Box::pin(self.inner.drop_waiters(whose)))
    }

    /// Asks those who hold to release: see [`bowline::Semaphore::ask_to_release`](crate::Semaphore::ask_to_release).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn ask_to_release(&self, whose: Whose) -> Result<u64> {
        block(&self.executor, "ask_to_release", Box::pin(self.inner.ask_to_release(whose)))
    }
}

impl Permit {
    /// Takes `count` permits out of this guard, into a guard of their own: see
    /// [`bowline::Permit::split`](crate::Permit::split). Does not block.
    pub fn split(&mut self, count: u32) -> Option<Self> {
        self.with_inner(|permit, executor| permit.split(count).map(|split| Self::new(split, executor)))
    }

    /// Adds the permits of `other`, which the same client holds of the same semaphore: see
    /// [`bowline::Permit::merge`](crate::Permit::merge). Does not block.
    ///
    /// # Errors
    /// Those of the async method.
    pub fn merge(&mut self, other: Self) -> Result<(), MergeError<Self>> {
        let (other, executor) = other.into_async();
        self.with_inner(|permit, _| permit.merge(other))
            .map_err(|error| error.map(|permit| Self::new(permit, &executor)))
    }
}
