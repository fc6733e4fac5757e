//! The semaphore that Java programs share, whose permits have leases.

use std::sync::Arc;

use super::acquire::{Acquire, TryAcquire};
use super::marker::AnyThread;
use super::thread::block;
use crate::{Executor, RedissonPermitsState, Result};

/// A semaphore that Java programs share, whose permits have leases, for blocking code. Guarantees are those of
/// [`bowline::RedissonPermitSemaphore`](crate::RedissonPermitSemaphore).
#[derive(Clone, Debug)]
pub struct RedissonPermitSemaphore {
    inner: crate::RedissonPermitSemaphore,
    executor: Arc<dyn Executor>,
}

impl RedissonPermitSemaphore {
    pub(super) fn new(inner: crate::RedissonPermitSemaphore, executor: &Arc<dyn Executor>) -> Self {
        Self { inner, executor: executor.clone() }
    }

    /// Sets the number of permits if none is stored: see
    /// [`bowline::RedissonPermitSemaphore::try_set_permits`](crate::RedissonPermitSemaphore::try_set_permits).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn try_set_permits(&self, permits: u32) -> Result<bool> {
        block(&self.executor, "try_set_permits", Box::pin(self.inner.try_set_permits(permits)))
    }

    /// Sets the number of permits, taken ones included: see
    /// [`bowline::RedissonPermitSemaphore::set_permits`](crate::RedissonPermitSemaphore::set_permits).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn set_permits(&self, permits: u32) -> Result<()> {
        block(&self.executor, "set_permits", Box::pin(self.inner.set_permits(permits)))
    }

    /// Adds permits, or takes them away: see
    /// [`bowline::RedissonPermitSemaphore::add_permits`](crate::RedissonPermitSemaphore::add_permits).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn add_permits(&self, change: i32) -> Result<()> {
        block(&self.executor, "add_permits", Box::pin(self.inner.add_permits(change)))
    }

    /// Takes a permit, and waits until one is free: see
    /// [`bowline::RedissonPermitSemaphore::acquire`](crate::RedissonPermitSemaphore::acquire).
    pub fn acquire(&self) -> Acquire<crate::RedissonPermitGuard, AnyThread> {
        self.inner.acquire().with_guard()
    }

    /// Takes a permit if one is free: see
    /// [`bowline::RedissonPermitSemaphore::try_acquire`](crate::RedissonPermitSemaphore::try_acquire).
    pub fn try_acquire(&self) -> TryAcquire<crate::RedissonPermitGuard, AnyThread> {
        self.inner.try_acquire().with_guard()
    }

    /// Reads how many permits are free: see
    /// [`bowline::RedissonPermitSemaphore::available`](crate::RedissonPermitSemaphore::available).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn available(&self) -> Result<u64> {
        block(&self.executor, "available", Box::pin(self.inner.available()))
    }

    /// Reads how many permits are taken: see
    /// [`bowline::RedissonPermitSemaphore::acquired`](crate::RedissonPermitSemaphore::acquired).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn acquired(&self) -> Result<u64> {
        block(&self.executor, "acquired", Box::pin(self.inner.acquired()))
    }

    /// Reads what is free, and the ids of what is taken: see
    /// [`bowline::RedissonPermitSemaphore::inspect`](crate::RedissonPermitSemaphore::inspect).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn inspect(&self) -> Result<RedissonPermitsState> {
        block(&self.executor, "inspect", Box::pin(self.inner.inspect()))
    }

    /// Gives a permit back by its id: see
    /// [`bowline::RedissonPermitSemaphore::release_id`](crate::RedissonPermitSemaphore::release_id).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn release_id(&self, id: &str) -> Result<bool> {
        block(&self.executor, "release_id", Box::pin(self.inner.release_id(id)))
    }
}
