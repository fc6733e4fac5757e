//! The semaphore.

use std::sync::Arc;

use super::{Acquire, AnyThread, TryAcquire, block};
use crate::{Executor, Result, SemaphoreState};

/// As [`bowline::Semaphore`](crate::Semaphore), for code that is not async.
#[derive(Clone, Debug)]
pub struct Semaphore {
    inner: crate::Semaphore,
    executor: Arc<dyn Executor>,
}

impl Semaphore {
    pub(super) fn new(inner: crate::Semaphore, executor: Arc<dyn Executor>) -> Self {
        Self { inner, executor }
    }

    /// Acquires one permit: see [`bowline::Semaphore::acquire`](crate::Semaphore::acquire).
    pub fn acquire(&self) -> Acquire<crate::Permit, AnyThread> {
        Acquire::new(self.executor.clone(), self.inner.acquire())
    }

    /// Acquires so many permits at once: see [`bowline::Semaphore::acquire_many`](crate::Semaphore::acquire_many).
    pub fn acquire_many(&self, count: u32) -> Acquire<crate::Permit, AnyThread> {
        Acquire::new(self.executor.clone(), self.inner.acquire_many(count))
    }

    /// Acquires one permit if it is free: see [`bowline::Semaphore::try_acquire`](crate::Semaphore::try_acquire).
    pub fn try_acquire(&self) -> TryAcquire<crate::Permit, AnyThread> {
        TryAcquire::new(self.executor.clone(), self.inner.try_acquire())
    }

    /// Acquires so many permits if they are free: see
    /// [`bowline::Semaphore::try_acquire_many`](crate::Semaphore::try_acquire_many).
    pub fn try_acquire_many(&self, count: u32) -> TryAcquire<crate::Permit, AnyThread> {
        TryAcquire::new(self.executor.clone(), self.inner.try_acquire_many(count))
    }

    /// See [`bowline::Semaphore::available`](crate::Semaphore::available).
    ///
    /// # Errors
    /// As there, and of a thread that may not block.
    pub fn available(&self) -> Result<u32> {
        block(&self.executor, "available", Box::pin(self.inner.available()))
    }

    /// See [`bowline::Semaphore::inspect`](crate::Semaphore::inspect).
    ///
    /// # Errors
    /// As there, and of a thread that may not block.
    pub fn inspect(&self) -> Result<SemaphoreState> {
        block(&self.executor, "inspect", Box::pin(self.inner.inspect()))
    }

    /// See [`bowline::Semaphore::set_limit`](crate::Semaphore::set_limit).
    ///
    /// # Errors
    /// As there, and of a thread that may not block.
    pub fn set_limit(&self, limit: u32) -> Result<()> {
        block(&self.executor, "set_limit", Box::pin(self.inner.set_limit(limit)))
    }
}
