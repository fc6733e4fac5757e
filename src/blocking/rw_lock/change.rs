//! Readers that become the writer, and the writer that becomes a reader.

use std::sync::Arc;
use std::time::Duration;

use crate::blocking::guard::{Guard, ReadGuard, UpgradableGuard, WriteGuard};
use crate::blocking::marker::ThisThread;
use crate::blocking::thread::block;
use crate::{Executor, Held, Result};

/// The outcome of `try_upgrade` of a [`ReadGuard`], and of `try_upgrade` and `upgrade_within` of an
/// [`UpgradableGuard`]: [`bowline::Upgrade`](crate::Upgrade) with blocking guards.
pub type Upgrade<T = ThisThread, R = ReadGuard<T>> = crate::Upgrade<WriteGuard<T>, R>;

fn blocking<R: Held, T>(
    outcome: crate::Upgrade<crate::WriteGuard, R>,
    executor: &Arc<dyn Executor>,
) -> Upgrade<T, Guard<R, T>> {
    match outcome {
        crate::Upgrade::Writing(guard) => Upgrade::Writing(WriteGuard::new(guard, executor)),
        crate::Upgrade::Shared(guard) => Upgrade::Shared(Guard::new(guard, executor)),
    }
}

impl<T> WriteGuard<T> {
    /// Turns this writer into a reader in one step: see
    /// [`bowline::WriteGuard::downgrade`](crate::WriteGuard::downgrade).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking). The guard is consumed, and its hold is
    /// released in the background.
    pub fn downgrade(self) -> Result<ReadGuard<T>> {
        let (guard, executor) = self.into_async();
        let reading = block(&executor, "downgrade", Box::pin(guard.downgrade()))?;
        Ok(ReadGuard::new(reading, &executor))
    }

    /// Turns this writer into a reader that may upgrade again: see
    /// [`bowline::WriteGuard::downgrade_to_upgradable`](crate::WriteGuard::downgrade_to_upgradable).
    ///
    /// # Errors
    /// Those of [`downgrade`](Self::downgrade).
    pub fn downgrade_to_upgradable(self) -> Result<UpgradableGuard<T>> {
        let (guard, executor) = self.into_async();
        let reading = block(&executor, "downgrade_to_upgradable", Box::pin(guard.downgrade_to_upgradable()))?;
        Ok(UpgradableGuard::new(reading, &executor))
    }
}

impl<T> ReadGuard<T> {
    /// Turns the only reader into the writer, without waiting: see
    /// [`bowline::ReadGuard::try_upgrade`](crate::ReadGuard::try_upgrade).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking). The guard is consumed, and its hold is
    /// released in the background.
    pub fn try_upgrade(self) -> Result<Upgrade<T>> {
        let (guard, executor) = self.into_async();
        Ok(blocking(block(&executor, "try_upgrade", Box::pin(guard.try_upgrade()))?, &executor))
    }
}

impl<T> UpgradableGuard<T> {
    /// Waits for the other readers, and turns this one into the writer: see
    /// [`bowline::UpgradableGuard::upgrade`](crate::UpgradableGuard::upgrade).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking). The guard is consumed, and its hold is
    /// released in the background.
    pub fn upgrade(self) -> Result<WriteGuard<T>> {
        let (guard, executor) = self.into_async();
        let writing = block(&executor, "upgrade", Box::pin(guard.upgrade()))?;
        Ok(WriteGuard::new(writing, &executor))
    }

    /// As [`upgrade`](Self::upgrade), with a limit: see
    /// [`bowline::UpgradableGuard::upgrade_within`](crate::UpgradableGuard::upgrade_within).
    ///
    /// # Errors
    /// Those of [`upgrade`](Self::upgrade).
    pub fn upgrade_within(self, timeout: Duration) -> Result<Upgrade<T, Self>> {
        let (guard, executor) = self.into_async();
        Ok(blocking(block(&executor, "upgrade_within", Box::pin(guard.upgrade_within(timeout)))?, &executor))
    }

    /// Turns the only reader into the writer, without waiting: see
    /// [`bowline::UpgradableGuard::try_upgrade`](crate::UpgradableGuard::try_upgrade).
    ///
    /// # Errors
    /// Those of [`upgrade`](Self::upgrade).
    pub fn try_upgrade(self) -> Result<Upgrade<T, Self>> {
        let (guard, executor) = self.into_async();
        Ok(blocking(block(&executor, "try_upgrade", Box::pin(guard.try_upgrade()))?, &executor))
    }

    /// Turns this reader into a plain one: see
    /// [`bowline::UpgradableGuard::downgrade`](crate::UpgradableGuard::downgrade).
    ///
    /// # Errors
    /// Those of [`upgrade`](Self::upgrade).
    pub fn downgrade(self) -> Result<ReadGuard<T>> {
        let (guard, executor) = self.into_async();
        let reading = block(&executor, "downgrade", Box::pin(guard.downgrade()))?;
        Ok(ReadGuard::new(reading, &executor))
    }
}
