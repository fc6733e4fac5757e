//! The read-write lock.

use std::sync::Arc;

use super::{Acquire, ReadGuard, ThisThread, TryAcquire, WriteGuard, block, this_thread};
use crate::{Executor, Result, RwLockState};

/// As [`bowline::RwLock`](crate::RwLock), for code that is not async.
#[derive(Clone, Debug)]
pub struct RwLock {
    inner: crate::RwLock,
    executor: Arc<dyn Executor>,
}

impl RwLock {
    pub(super) fn new(inner: crate::RwLock, executor: Arc<dyn Executor>) -> Self {
        Self { inner, executor }
    }

    /// Acquires for reading: see [`bowline::RwLock::read`](crate::RwLock::read).
    pub fn read(&self) -> Acquire<crate::ReadGuard> {
        Acquire::new(self.executor.clone(), self.inner.read().holder(&this_thread()))
    }

    /// Acquires for writing: see [`bowline::RwLock::write`](crate::RwLock::write).
    pub fn write(&self) -> Acquire<crate::WriteGuard> {
        Acquire::new(self.executor.clone(), self.inner.write().holder(&this_thread()))
    }

    /// Acquires for reading if nobody writes or waits: see [`bowline::RwLock::try_read`](crate::RwLock::try_read).
    pub fn try_read(&self) -> TryAcquire<crate::ReadGuard> {
        TryAcquire::new(self.executor.clone(), self.inner.try_read().holder(&this_thread()))
    }

    /// Acquires for writing if nobody has the lock or waits: see [`bowline::RwLock::try_write`](crate::RwLock::try_write).
    pub fn try_write(&self) -> TryAcquire<crate::WriteGuard> {
        TryAcquire::new(self.executor.clone(), self.inner.try_write().holder(&this_thread()))
    }

    /// See [`bowline::RwLock::inspect`](crate::RwLock::inspect).
    ///
    /// # Errors
    /// As there, and of a thread that may not block.
    pub fn inspect(&self) -> Result<RwLockState> {
        block(&self.executor, "inspect", Box::pin(self.inner.inspect()))
    }
}

/// What came of [`ReadGuard::try_upgrade`](super::Guard::try_upgrade): see [`bowline::Upgrade`](crate::Upgrade).
#[derive(Debug)]
#[must_use = "the lock is released when the guard is dropped"]
pub enum Upgrade<T = ThisThread> {
    /// The only reader writes now, with a token of its own.
    Writing(WriteGuard<T>),
    /// Others read as well; the guard is what it was.
    WouldDeadlock(ReadGuard<T>),
}

impl<T> WriteGuard<T> {
    /// Goes on as a reader: see [`bowline::WriteGuard::downgrade`](crate::WriteGuard::downgrade).
    ///
    /// # Errors
    /// As there, and of a thread that may not block. The guard is gone then.
    pub fn downgrade(self) -> Result<ReadGuard<T>> {
        let executor = self.executor.clone();
        let reading = self.end("downgrade", |guard| Box::pin(guard.downgrade()))?;
        Ok(ReadGuard::new(reading, &executor))
    }
}

impl<T> ReadGuard<T> {
    /// Goes on as the writer if nobody else reads: see [`bowline::ReadGuard::try_upgrade`](crate::ReadGuard::try_upgrade).
    ///
    /// # Errors
    /// As there, and of a thread that may not block. The guard is gone then.
    pub fn try_upgrade(self) -> Result<Upgrade<T>> {
        let executor = self.executor.clone();
        Ok(match self.end("try_upgrade", |guard| Box::pin(guard.try_upgrade()))? {
            crate::Upgrade::Writing(guard) => Upgrade::Writing(WriteGuard::new(guard, &executor)),
            crate::Upgrade::WouldDeadlock(guard) => Upgrade::WouldDeadlock(Self::new(guard, &executor)),
        })
    }
}
