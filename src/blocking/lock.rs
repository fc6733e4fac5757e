//! The lock.

use std::sync::Arc;

use super::{Acquire, TryAcquire, block, this_thread};
use crate::{Executor, LockState, Result, Token};

/// As [`bowline::Lock`](crate::Lock), for code that is not async.
#[derive(Clone, Debug)]
pub struct Lock {
    inner: crate::Lock,
    executor: Arc<dyn Executor>,
}

impl Lock {
    pub(super) fn new(inner: crate::Lock, executor: Arc<dyn Executor>) -> Self {
        Self { inner, executor }
    }

    /// Acquires the lock, waiting while others hold it: see [`bowline::Lock::lock`](crate::Lock::lock).
    pub fn lock(&self) -> Acquire<crate::LockGuard> {
        Acquire::new(self.executor.clone(), self.inner.lock().holder(&this_thread()))
    }

    /// Acquires the lock if it is free: see [`bowline::Lock::try_lock`](crate::Lock::try_lock).
    pub fn try_lock(&self) -> TryAcquire<crate::LockGuard> {
        TryAcquire::new(self.executor.clone(), self.inner.try_lock().holder(&this_thread()))
    }

    /// See [`bowline::Lock::inspect`](crate::Lock::inspect).
    ///
    /// # Errors
    /// As there, and of a thread that may not block.
    pub fn inspect(&self) -> Result<LockState> {
        block(&self.executor, "inspect", Box::pin(self.inner.inspect()))
    }

    /// See [`bowline::Lock::force_release`](crate::Lock::force_release).
    ///
    /// # Errors
    /// As there, and of a thread that may not block.
    pub fn force_release(&self) -> Result<Option<Token>> {
        block(&self.executor, "force_release", Box::pin(self.inner.force_release()))
    }
}
