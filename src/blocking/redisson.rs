//! Locks that Java programs share.

use std::sync::Arc;

use super::acquire::{Acquire, TryAcquire};
use super::redisson_permit_semaphore::RedissonPermitSemaphore;
use super::redisson_semaphore::RedissonSemaphore;
use super::thread::{block, this_thread};
use crate::{Executor, LatchWait, RedissonLockState, Result};

/// The locks of Java programs that use Redisson, for blocking code: see [`bowline::Redisson`](crate::Redisson).
#[derive(Clone, Debug)]
pub struct Redisson {
    inner: crate::Redisson,
    executor: Arc<dyn Executor>,
}

impl Redisson {
    pub(super) fn new(inner: crate::Redisson, executor: Arc<dyn Executor>) -> Self {
        Self { inner, executor }
    }

    /// Maps all names by a function: see [`bowline::Redisson::map_names`](crate::Redisson::map_names).
    pub fn map_names(self, mapper: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self { inner: self.inner.map_names(mapper), ..self }
    }

    /// Returns the lock `name`: see [`bowline::Redisson::lock`](crate::Redisson::lock).
    pub fn lock(&self, name: &str) -> RedissonLock {
        RedissonLock { inner: self.inner.lock(name), executor: self.executor.clone() }
    }

    /// Returns the fenced lock `name`: see [`bowline::Redisson::fenced_lock`](crate::Redisson::fenced_lock).
    pub fn fenced_lock(&self, name: &str) -> RedissonFencedLock {
        RedissonFencedLock { inner: self.inner.fenced_lock(name), executor: self.executor.clone() }
    }

    /// Returns the latch `name`: see [`bowline::Redisson::count_down_latch`](crate::Redisson::count_down_latch).
    pub fn count_down_latch(&self, name: &str) -> RedissonCountDownLatch {
        RedissonCountDownLatch { inner: self.inner.count_down_latch(name), executor: self.executor.clone() }
    }

    /// Returns the semaphore `name`: see [`bowline::Redisson::semaphore`](crate::Redisson::semaphore).
    pub fn semaphore(&self, name: &str) -> RedissonSemaphore {
        RedissonSemaphore::new(self.inner.semaphore(name), &self.executor)
    }

    /// Returns the semaphore `name`, whose permits have leases: see
    /// [`bowline::Redisson::permit_semaphore`](crate::Redisson::permit_semaphore).
    pub fn permit_semaphore(&self, name: &str) -> RedissonPermitSemaphore {
        RedissonPermitSemaphore::new(self.inner.permit_semaphore(name), &self.executor)
    }
}

macro_rules! locks {
    ($($lock:ident: $guard:ident, $(#[$doc:meta])+;)+) => {$(
        $(#[$doc])+
        #[derive(Clone, Debug)]
        pub struct $lock {
            inner: crate::$lock,
            executor: Arc<dyn Executor>,
        }

        impl $lock {
            /// Acquires the lock for this thread, and waits while others hold it: see
            /// [`bowline::RedissonLock::lock`](crate::RedissonLock::lock).
            pub fn lock(&self) -> Acquire<crate::$guard> {
                self.inner.lock().holder(&this_thread()).with_guard()
            }

            /// Acquires the lock for this thread if it is free: see
            /// [`bowline::RedissonLock::try_lock`](crate::RedissonLock::try_lock).
            pub fn try_lock(&self) -> TryAcquire<crate::$guard> {
                self.inner.try_lock().holder(&this_thread()).with_guard()
            }

            /// Reads who holds the lock: see [`bowline::RedissonLock::inspect`](crate::RedissonLock::inspect).
            ///
            /// # Errors
            /// Those of the async method and [those of blocking](crate::blocking).
            pub fn inspect(&self) -> Result<RedissonLockState> {
                block(&self.executor, "inspect", Box::pin(self.inner.inspect()))
            }

            /// Takes the lock from its holder: see
            /// [`bowline::RedissonLock::force_release`](crate::RedissonLock::force_release).
            ///
            /// # Errors
            /// Those of the async method and [those of blocking](crate::blocking).
            pub fn force_release(&self) -> Result<bool> {
                block(&self.executor, "force_release", Box::pin(self.inner.force_release()))
            }
        }
    )+};
}

locks! {
    RedissonLock: RedissonGuard,
        /// A lock that Java programs share, for blocking code. Guarantees are those of
        /// [`bowline::RedissonLock`](crate::RedissonLock).
        ;
    RedissonFencedLock: RedissonFencedGuard,
        /// A lock with fencing tokens that Java programs share, for blocking code. Guarantees are those of
        /// [`bowline::RedissonFencedLock`](crate::RedissonFencedLock).
        ;
}

/// A latch that Java programs share, for blocking code. Guarantees are those of
/// [`bowline::RedissonCountDownLatch`](crate::RedissonCountDownLatch).
#[derive(Clone, Debug)]
pub struct RedissonCountDownLatch {
    inner: crate::RedissonCountDownLatch,
    executor: Arc<dyn Executor>,
}

impl RedissonCountDownLatch {
    /// Sets the count: see
    /// [`bowline::RedissonCountDownLatch::try_set_count`](crate::RedissonCountDownLatch::try_set_count).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn try_set_count(&self, count: u32) -> Result<bool> {
        block(&self.executor, "try_set_count", Box::pin(self.inner.try_set_count(count)))
    }

    /// Counts down by one: see
    /// [`bowline::RedissonCountDownLatch::count_down`](crate::RedissonCountDownLatch::count_down).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn count_down(&self) -> Result<u64> {
        block(&self.executor, "count_down", Box::pin(self.inner.count_down()))
    }

    /// Reads the count: see [`bowline::RedissonCountDownLatch::count`](crate::RedissonCountDownLatch::count).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn count(&self) -> Result<u64> {
        block(&self.executor, "count", Box::pin(self.inner.count()))
    }

    /// Waits until the count is zero: see
    /// [`bowline::RedissonCountDownLatch::wait`](crate::RedissonCountDownLatch::wait). Call
    /// [`block`](LatchWait::block) on the result.
    pub fn wait(&self) -> LatchWait {
        self.inner.wait()
    }
}
