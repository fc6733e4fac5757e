//! Locks that Java programs share.

use std::sync::Arc;

use super::acquire::{Acquire, TryAcquire};
use super::thread::{block, this_thread};
use crate::{Executor, RedissonLockState, Result};

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
