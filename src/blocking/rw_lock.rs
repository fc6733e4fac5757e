//! The read-write lock.

use std::sync::Arc;
use std::time::Duration;

use super::acquire::{Acquire, TryAcquire};
use super::changes::Changes;
use super::guard::{Guard, ReadGuard, UpgradableGuard, WriteGuard};
use super::marker::AnyThread;
use super::thread::{block, this_thread};
use crate::{Executor, HoldChanges, HoldHandle, Result, Revoked, RwLockState, Whose};

pub use change::Upgrade;

mod change;

/// Like the guard, a `MutexGuard` is `Sync` but not `Send`.
#[derive(Clone, Debug)]
pub struct RwLock {
    pub(super) inner: crate::RwLock,
    executor: Arc<dyn Executor>,
}

impl RwLock {
    pub(super) fn new(inner: crate::RwLock, executor: Arc<dyn Executor>) -> Self {
        Self { inner, executor }
    }

    /// All acquisitions of this handle for writing are retained for that time: see
    /// [`bowline::RwLock::retained`](crate::RwLock::retained).
    pub fn retained(self, time: Duration) -> Self {
        Self { inner: self.inner.retained(time), ..self }
    }

    /// Acquires for reading, for this thread: see [`bowline::RwLock::read`](crate::RwLock::read).
    pub fn read(&self) -> Acquire<crate::ReadGuard> {
        self.inner.read().holder(&this_thread()).with_guard()
    }

    /// Acquires for reading with the right to upgrade, for this thread: see
    /// [`bowline::RwLock::upgradable_read`](crate::RwLock::upgradable_read).
    pub fn upgradable_read(&self) -> Acquire<crate::UpgradableGuard> {
        self.inner.upgradable_read().holder(&this_thread()).with_guard()
    }

    /// Acquires for writing, for this thread: see [`bowline::RwLock::write`](crate::RwLock::write).
    pub fn write(&self) -> Acquire<crate::WriteGuard> {
        self.inner.write().holder(&this_thread()).with_guard()
    }

    /// Acquires for reading if that needs no wait: see [`bowline::RwLock::try_read`](crate::RwLock::try_read).
    pub fn try_read(&self) -> TryAcquire<crate::ReadGuard> {
        self.inner.try_read().holder(&this_thread()).with_guard()
    }

    /// Acquires for reading with the right to upgrade, if that needs no wait: see
    /// [`bowline::RwLock::try_upgradable_read`](crate::RwLock::try_upgradable_read).
    pub fn try_upgradable_read(&self) -> TryAcquire<crate::UpgradableGuard> {
        self.inner.try_upgradable_read().holder(&this_thread()).with_guard()
    }

    /// Acquires for writing if that needs no wait: see [`bowline::RwLock::try_write`](crate::RwLock::try_write).
    pub fn try_write(&self) -> TryAcquire<crate::WriteGuard> {
        self.inner.try_write().holder(&this_thread()).with_guard()
    }

    /// Reads who holds the lock: see [`bowline::RwLock::inspect`](crate::RwLock::inspect).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn inspect(&self) -> Result<RwLockState> {
        block(&self.executor, "inspect", Box::pin(self.inner.inspect()))
    }

    /// Takes over what another program has left: see
    /// [`bowline::RwLock::resume_write`](crate::RwLock::resume_write). The guard may move to any thread.
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn resume_write(&self, handle: &HoldHandle) -> Result<WriteGuard<AnyThread>> {
        let resumed = block(&self.executor, "resume_write", Box::pin(self.inner.resume_write(handle)))?;
        Ok(Guard::new(resumed, &self.executor))
    }

    /// Takes over what another program has left: see
    /// [`bowline::RwLock::resume_read`](crate::RwLock::resume_read). The guard may move to any thread.
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn resume_read(&self, handle: &HoldHandle) -> Result<ReadGuard<AnyThread>> {
        let resumed = block(&self.executor, "resume_read", Box::pin(self.inner.resume_read(handle)))?;
        Ok(Guard::new(resumed, &self.executor))
    }

    /// Takes over what another program has left: see
    /// [`bowline::RwLock::resume_upgradable`](crate::RwLock::resume_upgradable). The guard may move to any thread.
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn resume_upgradable(&self, handle: &HoldHandle) -> Result<UpgradableGuard<AnyThread>> {
        let resumed = block(&self.executor, "resume_upgradable", Box::pin(self.inner.resume_upgradable(handle)))?;
        Ok(Guard::new(resumed, &self.executor))
    }

    /// Reports grants, releases and losses: see [`bowline::RwLock::changes`](crate::RwLock::changes).
    pub fn changes(&self) -> Changes<HoldChanges> {
        Changes::new(self.inner.changes(), &self.executor)
    }

    /// Takes the lock from its readers or its writer: see
    /// [`bowline::RwLock::force_release`](crate::RwLock::force_release).
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

    /// Asks those who hold to release: see [`bowline::RwLock::ask_to_release`](crate::RwLock::ask_to_release).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn ask_to_release(&self, whose: Whose) -> Result<u64> {
        block(&self.executor, "ask_to_release", Box::pin(self.inner.ask_to_release(whose)))
    }
}
