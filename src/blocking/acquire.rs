//! The blocking builders: `block`, a blocking `run`, and a holder other than the thread.

use std::future::IntoFuture;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use super::guard::Guard;
use super::marker::{AnyThread, ThisThread};
use super::thread::block;
use crate::hold::covered::covered;
use crate::{ForceAfter, Held, Holder, Reentrant, Result};

/// The builder of the async API, [`bowline::Acquire`](crate::Acquire), with a blocking guard. That page documents the
/// options, such as [`timeout`](crate::Acquire::timeout). Nothing is sent before [`block`](crate::Acquire::block).
///
/// `G` is the async guard that [`Guard`] wraps. `T` says which threads the builder and its guard may move to:
/// [`ThisThread`] or [`AnyThread`].
pub type Acquire<G = crate::LockGuard, T = ThisThread> = crate::Acquire<Guard<G, T>>;

/// The builder of the async API, [`bowline::TryAcquire`](crate::TryAcquire), with a blocking guard. That page documents
/// the options. Nothing is sent before [`block`](crate::TryAcquire::block). The parameters are those of [`Acquire`].
pub type TryAcquire<G = crate::LockGuard, T = ThisThread> = crate::TryAcquire<Guard<G, T>>;

impl<G: Held, T> Acquire<G, T> {
    /// Blocks the thread until the acquisition is granted or fails.
    ///
    /// # Errors
    /// Those of [`Acquire`](crate::Acquire), and [`InvalidInput`](crate::ErrorKind::InvalidInput) on a thread that
    /// drives async tasks.
    pub fn block(self) -> Result<Guard<G, T>> {
        let executor = self.executor()?;
        let guard = block(&executor, "acquire", self.with_guard::<G>().into_future())?;
        Ok(Guard::new(guard, &executor))
    }

    /// Acquires, calls `work` with the guard, and releases, even if `work` panics.
    ///
    /// Blocking code cannot be stopped when its lease is lost. Long work should check [`is_valid`](Held::is_valid)
    /// before each step.
    ///
    /// # Errors
    /// - Those of [`block`](Self::block). `work` is not called then.
    /// - [`Lost`](crate::ErrorKind::Lost): the lease ended before the work did. The output of `work` is dropped.
    /// - [`WrongType`](crate::ErrorKind::WrongType), [`Protocol`](crate::ErrorKind::Protocol): something other than
    ///   bowline changed the key. Any other failure of the release is not an error: the lease covered the work, and the
    ///   release continues in the background.
    pub fn run<O>(self, work: impl FnOnce(&Guard<G, T>) -> O) -> Result<O> {
        run(self.block()?, work)
    }
}

impl<T> Acquire<crate::LockGuard, T> {
    /// Asks the holder to release the lock, and takes it by force after that time: see
    /// [`bowline::ForceAfter`](crate::ForceAfter). Set the other options before, and call
    /// [`block`](crate::ForceAfter::block) on the result.
    pub fn force_after(self, after: Duration) -> ForceAfter<Guard<crate::LockGuard, T>> {
        ForceAfter { acquire: self, after }
    }
}

impl<T> ForceAfter<Guard<crate::LockGuard, T>> {
    /// Blocks the thread until the lock is acquired or that fails.
    ///
    /// # Errors
    /// Those of [`ForceAfter`], and [`InvalidInput`](crate::ErrorKind::InvalidInput) on a thread that drives async
    /// tasks.
    pub fn block(self) -> Result<Guard<crate::LockGuard, T>> {
        let executor = self.executor()?;
        let Self { acquire, after } = self;
        let acquire = acquire.with_guard::<crate::LockGuard>();
        let guard = block(&executor, "acquire", ForceAfter { acquire, after }.into_future())?;
        Ok(Guard::new(guard, &executor))
    }
}

impl<G: Reentrant, T> Acquire<G, T> {
    /// Acquires for `holder` instead of the current thread, so that the guard may move to other threads.
    pub fn holder(self, holder: &Holder) -> Acquire<G, AnyThread> {
        self.held_by(holder).with_guard()
    }

    /// Fails if the thread, or the holder that was named, already holds the primitive: see
    /// [`bowline::Acquire::deny_reentry`](crate::Acquire::deny_reentry).
    pub fn deny_reentry(self) -> Self {
        self.denying_reentry()
    }
}

impl<G: Held, T> TryAcquire<G, T> {
    /// Blocks the thread until the server has answered. `None` means that others hold what is asked for, or wait for
    /// it, or that the grant arrived after its lease had expired.
    ///
    /// # Errors
    /// Those of [`TryAcquire`](crate::TryAcquire), and [`InvalidInput`](crate::ErrorKind::InvalidInput) on a thread
    /// that drives async tasks.
    pub fn block(self) -> Result<Option<Guard<G, T>>> {
        let executor = self.executor()?;
        let guard = block(&executor, "try_acquire", self.with_guard::<G>().into_future())?;
        Ok(guard.map(|guard| Guard::new(guard, &executor)))
    }

    /// Tries to acquire, calls `work` with the guard, and releases, as [`Acquire::run`](crate::Acquire::run) does.
    /// `None` means that nothing was acquired and `work` was not called.
    ///
    /// # Errors
    /// As for [`Acquire::run`](crate::Acquire::run).
    pub fn run<O>(self, work: impl FnOnce(&Guard<G, T>) -> O) -> Result<Option<O>> {
        self.block()?.map(|guard| run(guard, work)).transpose()
    }
}

impl<G: Reentrant, T> TryAcquire<G, T> {
    /// Acquires for `holder` instead of the current thread, so that the guard may move to other threads.
    pub fn holder(self, holder: &Holder) -> TryAcquire<G, AnyThread> {
        self.held_by(holder).with_guard()
    }

    /// Fails if the thread, or the holder that was named, already holds the primitive: see
    /// [`bowline::TryAcquire::deny_reentry`](crate::TryAcquire::deny_reentry).
    pub fn deny_reentry(self) -> Self {
        self.denying_reentry()
    }
}

fn run<G: Held, T, O>(guard: Guard<G, T>, work: impl FnOnce(&Guard<G, T>) -> O) -> Result<O> {
    let worked = catch_unwind(AssertUnwindSafe(|| work(&guard)));
    let released = guard.release();
    match worked {
        Ok(output) => covered(released).map(|()| output),
        Err(panic) => resume_unwind(panic),
    }
}
