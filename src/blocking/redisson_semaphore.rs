//! The semaphore that Java programs share.

use std::future::IntoFuture;
use std::sync::Arc;

use super::guard::LONGEST_DROP;
use super::thread::{self, block};
use crate::runtime::timeout;
use crate::{Executor, RedissonAcquire, Result};

/// A semaphore that Java programs share, for blocking code. Guarantees are those of
/// [`bowline::RedissonSemaphore`](crate::RedissonSemaphore).
#[derive(Clone, Debug)]
pub struct RedissonSemaphore {
    inner: crate::RedissonSemaphore,
    executor: Arc<dyn Executor>,
}

impl RedissonSemaphore {
    pub(super) fn new(inner: crate::RedissonSemaphore, executor: &Arc<dyn Executor>) -> Self {
        Self { inner, executor: executor.clone() }
    }

    /// Sets the number of permits if none is stored: see
    /// [`bowline::RedissonSemaphore::try_set_permits`](crate::RedissonSemaphore::try_set_permits).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn try_set_permits(&self, permits: u32) -> Result<bool> {
        block(&self.executor, "try_set_permits", Box::pin(self.inner.try_set_permits(permits)))
    }

    /// Takes one permit: see [`bowline::RedissonSemaphore::acquire`](crate::RedissonSemaphore::acquire). Call
    /// [`block`](RedissonAcquire::block) on the result.
    pub fn acquire(&self) -> RedissonAcquire {
        self.inner.acquire()
    }

    /// Takes so many permits at once: see
    /// [`bowline::RedissonSemaphore::acquire_many`](crate::RedissonSemaphore::acquire_many). Call
    /// [`block`](RedissonAcquire::block) on the result.
    pub fn acquire_many(&self, permits: u32) -> RedissonAcquire {
        self.inner.acquire_many(permits)
    }

    /// Takes one permit if it is free: see
    /// [`bowline::RedissonSemaphore::try_acquire`](crate::RedissonSemaphore::try_acquire).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn try_acquire(&self) -> Result<Option<RedissonPermits>> {
        self.try_acquire_many(1)
    }

    /// Takes so many permits if they are free: see
    /// [`bowline::RedissonSemaphore::try_acquire_many`](crate::RedissonSemaphore::try_acquire_many).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn try_acquire_many(&self, permits: u32) -> Result<Option<RedissonPermits>> {
        let taken = block(&self.executor, "try_acquire", Box::pin(self.inner.try_acquire_many(permits)))?;
        Ok(taken.map(|permits| RedissonPermits::new(permits, &self.executor)))
    }

    /// Takes all permits that are free: see
    /// [`bowline::RedissonSemaphore::drain`](crate::RedissonSemaphore::drain).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn drain(&self) -> Result<Option<RedissonPermits>> {
        let taken = block(&self.executor, "drain", Box::pin(self.inner.drain()))?;
        Ok(taken.map(|permits| RedissonPermits::new(permits, &self.executor)))
    }

    /// Gives permits: see [`bowline::RedissonSemaphore::release`](crate::RedissonSemaphore::release).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn release(&self, permits: u32) -> Result<()> {
        block(&self.executor, "release", Box::pin(self.inner.release(permits)))
    }

    /// Adds permits, or takes them away: see
    /// [`bowline::RedissonSemaphore::add_permits`](crate::RedissonSemaphore::add_permits).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn add_permits(&self, change: i32) -> Result<()> {
        block(&self.executor, "add_permits", Box::pin(self.inner.add_permits(change)))
    }

    /// Reads how many permits are free: see
    /// [`bowline::RedissonSemaphore::available`](crate::RedissonSemaphore::available).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn available(&self) -> Result<u64> {
        block(&self.executor, "available", Box::pin(self.inner.available()))
    }
}

impl RedissonAcquire {
    /// Blocks the thread until the permits are taken or the acquisition fails.
    ///
    /// # Errors
    /// Those of [`RedissonAcquire`], and [those of blocking](crate::blocking).
    pub fn block(self) -> Result<RedissonPermits> {
        let executor = self.executor().clone();
        let permits = block(&executor, "acquire", self.into_future())?;
        Ok(RedissonPermits::new(permits, &executor))
    }
}

/// Permits that Java programs share, for blocking code: see [`bowline::RedissonPermits`](crate::RedissonPermits).
///
/// # Dropping
/// The drop gives the permits back and blocks until the server has confirmed it, for at most 1 s. After that time it
/// continues in the background, as it does on a thread that may not block.
#[derive(Debug)]
#[must_use = "the permits are given back when this is dropped"]
pub struct RedissonPermits {
    /// `None` once they are given back or forgotten.
    inner: Option<crate::RedissonPermits>,
    permits: u32,
    executor: Arc<dyn Executor>,
}

impl RedissonPermits {
    fn new(inner: crate::RedissonPermits, executor: &Arc<dyn Executor>) -> Self {
        let permits = inner.permits();
        Self { inner: Some(inner), permits, executor: executor.clone() }
    }

    /// How many permits these are.
    pub fn permits(&self) -> u32 {
        self.permits
    }

    /// Gives the permits back: see [`bowline::RedissonPermits::release`](crate::RedissonPermits::release).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn release(mut self) -> Result<()> {
        match self.inner.take() {
            Some(permits) => block(&self.executor, "release", Box::pin(permits.release())),
            None => Ok(()),
        }
    }

    /// Leaves the permits taken, and does not block: see
    /// [`bowline::RedissonPermits::forget`](crate::RedissonPermits::forget).
    pub fn forget(mut self) -> u32 {
        self.inner.take().map_or(0, crate::RedissonPermits::forget)
    }
}

impl Drop for RedissonPermits {
    fn drop(&mut self) {
        let Some(permits) = self.inner.take().filter(|_| !thread::ends()) else { return };
        let executor = &self.executor;
        let release = async { Ok(timeout(executor, LONGEST_DROP, permits.release()).await) };
        // A drop cannot report a failure. A release that was not confirmed continues in the background.
        let _ = block(executor, "release", Box::pin(release));
    }
}
