//! The semaphore.

use std::sync::Arc;

use super::acquire::{Acquire, TryAcquire};
use super::marker::AnyThread;
use super::thread::block;
use crate::{Executor, Result, SemaphoreState};

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

    /// Stores a limit in Redis: see [`bowline::Semaphore::set_limit`](crate::Semaphore::set_limit).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn set_limit(&self, limit: u32) -> Result<()> {
        block(&self.executor, "set_limit", Box::pin(self.inner.set_limit(limit)))
    }
}
