//! The guards.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use super::marker::{AnyThread, ThisThread};
use super::thread;
use super::thread::block;
use crate::runtime::timeout;
use crate::{Error, ErrorKind, Executor, Held, Loss, LossSignal, Result, Token};

/// How long the drop of a guard waits for the server.
const LONGEST_DROP: Duration = Duration::from_secs(1);

/// A guard for blocking code. It wraps `G`, a guard of the async API.
///
/// `T` says which threads the guard may move to. A guard of [`ThisThread`] belongs to the thread that acquired it and is not
/// `Send`. A guard of [`AnyThread`] is `Send`: it belongs to an explicit [`Holder`](crate::Holder), or is a permit. Both are
/// `Sync`, so a scoped thread may watch a guard that it borrows.
///
/// # Dropping
/// The drop releases and blocks until the server has confirmed the release, for at most 1 s. After that time the release
/// continues in the background, as it does on a thread that may not block. If several guards of one holder share a hold, only
/// the last one releases it.
///
/// A guard in a thread-local is released when its thread ends, possibly in the background. A forgotten guard
/// ([`std::mem::forget`]) is held until the client is [closed](super::Client::close), even after its thread has ended.
#[must_use = "the lock is released when the guard is dropped"]
pub struct Guard<G: Held, T = ThisThread> {
    /// `None` only while the guard is being consumed or dropped.
    inner: Option<G>,
    signal: LossSignal,
    pub(super) executor: Arc<dyn Executor>,
    threads: PhantomData<T>,
}

/// A held lock: see [`bowline::LockGuard`](crate::LockGuard).
pub type LockGuard<T = ThisThread> = Guard<crate::LockGuard, T>;
/// A read-write lock held for reading: see [`bowline::ReadGuard`](crate::ReadGuard).
pub type ReadGuard<T = ThisThread> = Guard<crate::ReadGuard, T>;
/// A read-write lock held for writing: see [`bowline::WriteGuard`](crate::WriteGuard).
pub type WriteGuard<T = ThisThread> = Guard<crate::WriteGuard, T>;
/// Permits of a semaphore: see [`bowline::Permit`](crate::Permit). Permits have no holder, so they may move to any thread.
pub type Permit = Guard<crate::Permit, AnyThread>;

impl<G: Held, T> Guard<G, T> {
    pub(super) fn new(guard: G, executor: &Arc<dyn Executor>) -> Self {
        Self { signal: guard.lost_signal(), inner: Some(guard), executor: executor.clone(), threads: PhantomData }
    }

    /// Blocks on an operation that consumes the guard.
    pub(super) fn end<O: Send>(
        mut self,
        operation: &'static str,
        end: impl FnOnce(G) -> BoxFuture<'static, Result<O>>,
    ) -> Result<O> {
        match self.inner.take() {
            Some(guard) => block(&self.executor, operation, end(guard)),
            None => Err(Error::new(ErrorKind::Closed, operation)),
        }
    }

    /// The name of the primitive.
    pub fn name(&self) -> &str {
        self.inner.as_ref().map_or("", G::name)
    }

    /// Whether the hold is still valid by this client's own count of the lease. Sends no command.
    ///
    /// Blocking code cannot be stopped when the lease is lost. It should check before each step and after each pause.
    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// The rest of the lease by this client's own count, which runs ahead of the server's for safety. Zero after a loss.
    pub fn remaining(&self) -> Duration {
        self.inner.as_ref().map_or(Duration::ZERO, G::remaining)
    }

    /// Blocks until the hold is lost, and returns the reason. Meant for a thread that watches the work of others.
    ///
    /// # Errors
    /// [Those of blocking](crate::blocking).
    pub fn lost(&self) -> Result<Loss> {
        let Some(guard) = &self.inner else { return Ok(Loss::Gone) };
        block(&self.executor, "lost", Box::pin(async { Ok(guard.lost().await) }))
    }

    /// Blocks until the hold is lost, for at most `duration`. `None` means that it was not lost in that time.
    ///
    /// # Errors
    /// [Those of blocking](crate::blocking).
    pub fn lost_within(&self, duration: Duration) -> Result<Option<Loss>> {
        let Some(guard) = &self.inner else { return Ok(Some(Loss::Gone)) };
        let executor = &self.executor;
        block(executor, "lost", Box::pin(async { Ok(timeout(executor, duration, guard.lost()).await) }))
    }

    /// A signal of the loss for other threads and tasks: see
    /// [`bowline::LockGuard::lost_signal`](crate::LockGuard::lost_signal).
    pub fn lost_signal(&self) -> LossSignal {
        self.signal.clone()
    }

    /// Prolongs a fixed lease: see [`bowline::LockGuard::extend`](crate::LockGuard::extend).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn extend(&self, lease: Duration) -> Result<()> {
        match &self.inner {
            Some(guard) => block(&self.executor, "extend", Box::pin(guard.extend(lease))),
            None => Err(Error::new(ErrorKind::Closed, "extend")),
        }
    }

    /// Releases, and blocks until the server has confirmed it: see [`bowline::LockGuard::release`](crate::LockGuard::release).
    /// If several guards of one holder share the hold, only the last one releases it.
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking). On a thread that may not block, the release continues
    /// in the background.
    pub fn release(self) -> Result<()> {
        self.end("release", |guard| Box::pin(guard.release()))
    }
}

impl<T> LockGuard<T> {
    /// The fencing token of this hold.
    pub fn token(&self) -> Token {
        self.inner.as_ref().map_or(Token::NONE, crate::LockGuard::token)
    }
}

impl<T> ReadGuard<T> {
    /// The fencing token of a reader: see [`bowline::ReadGuard::token`](crate::ReadGuard::token).
    pub fn token(&self) -> Token {
        self.inner.as_ref().map_or(Token::NONE, crate::ReadGuard::token)
    }
}

impl<T> WriteGuard<T> {
    /// The fencing token of this hold.
    pub fn token(&self) -> Token {
        self.inner.as_ref().map_or(Token::NONE, crate::WriteGuard::token)
    }
}

impl Permit {
    /// The number of permits that this guard holds.
    pub fn count(&self) -> u32 {
        self.inner.as_ref().map_or(0, crate::Permit::count)
    }
}

impl<G: Held, T> Drop for Guard<G, T> {
    fn drop(&mut self) {
        let Some(guard) = self.inner.take() else { return };
        if thread::ends() {
            return;
        }
        let executor = &self.executor;
        let release = async { Ok(timeout(executor, LONGEST_DROP, guard.release()).await) };
        // A failure has no recipient here. An unconfirmed release continues in the background.
        let _ = block(executor, "release", Box::pin(release));
    }
}

impl<G: Held, T> fmt::Debug for Guard<G, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.inner {
            Some(guard) => guard.fmt(f),
            None => f.write_str("Guard"),
        }
    }
}
