//! The lock.

use std::sync::Arc;
use std::time::Duration;

use super::acquire::{Acquire, TryAcquire};
use super::changes::Changes;
use super::guard::Guard;
use super::marker::AnyThread;
use super::thread::{block, this_thread};
use crate::{Executor, HoldChanges, HoldHandle, LockState, Result, Token, Whose};

/// A named lock for blocking code. Guarantees and fairness are those of [`bowline::Lock`](crate::Lock).
#[derive(Clone, Debug)]
pub struct Lock {
    pub(super) inner: crate::Lock,
    executor: Arc<dyn Executor>,
}

impl Lock {
    pub(super) fn new(inner: crate::Lock, executor: Arc<dyn Executor>) -> Self {
        Self { inner, executor }
    }

    /// All acquisitions of this handle are retained for that time: see
    /// [`bowline::Lock::retained`](crate::Lock::retained).
    pub fn retained(self, time: Duration) -> Self {
        Self { inner: self.inner.retained(time), ..self }
    }

    /// Acquires the lock for this thread, and waits while others hold it: see
    /// [`bowline::Lock::lock`](crate::Lock::lock).
    pub fn lock(&self) -> Acquire {
        self.inner.lock().holder(&this_thread()).with_guard()
    }

    /// Acquires the lock for this thread if it is free: see [`bowline::Lock::try_lock`](crate::Lock::try_lock).
    pub fn try_lock(&self) -> TryAcquire {
        self.inner.try_lock().holder(&this_thread()).with_guard()
    }

    /// Reads who holds the lock: see [`bowline::Lock::inspect`](crate::Lock::inspect).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn inspect(&self) -> Result<LockState> {
        block(&self.executor, "inspect", Box::pin(self.inner.inspect()))
    }

    /// Takes over what another program has left: see
    /// [`bowline::Lock::resume`](crate::Lock::resume). The guard may move to any thread.
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn resume(&self, handle: &HoldHandle) -> Result<Guard<crate::LockGuard, AnyThread>> {
        let resumed = block(&self.executor, "resume", Box::pin(self.inner.resume(handle)))?;
        Ok(Guard::new(resumed, &self.executor))
    }

    /// Reports grants, releases and losses: see [`bowline::Lock::changes`](crate::Lock::changes).
    pub fn changes(&self) -> Changes<HoldChanges> {
        Changes::new(self.inner.changes(), &self.executor)
    }

    /// Takes the lock from its holder: see [`bowline::Lock::force_release`](crate::Lock::force_release).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn force_release(&self) -> Result<Option<Token>> {
        block(&self.executor, "force_release", Box::pin(self.inner.force_release()))
    }

    /// Takes acquisitions that wait out of the queue: see [`bowline::Lock::drop_waiters`](crate::Lock::drop_waiters).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn drop_waiters(&self, whose: Whose) -> Result<u64> {
        block(&self.executor, "drop_waiters", Box::pin(self.inner.drop_waiters(whose)))
    }

    /// Asks the holder to release: see [`bowline::Lock::ask_to_release`](crate::Lock::ask_to_release).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn ask_to_release(&self) -> Result<bool> {
        block(&self.executor, "ask_to_release", Box::pin(self.inner.ask_to_release()))
    }
}
