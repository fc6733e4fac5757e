//! The guards.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use super::{AnyThread, ThisThread, block, threads};
use crate::runtime::timeout;
use crate::{Error, ErrorKind, Executor, Held, Loss, LossSignal, Result, Token};

/// How long a dropped guard waits for the server's answer.
const LONGEST_DROP: Duration = Duration::from_secs(1);

/// As the guard `G` of the async API, for code that is not async.
///
/// `T` says where the guard may go: a guard of [`ThisThread`] stays on the thread that acquired it, and is not `Send`;
/// a guard of [`AnyThread`], which belongs to a [`Holder`](crate::Holder) that was named or is a permit, is. Both are
/// `Sync`: a scoped thread may watch a guard that it borrows.
///
/// # Dropping
/// The drop releases, and returns when the server has confirmed it: after it the next one has the lock. It waits for one
/// second at the longest; what is not done by then, and what is dropped on a thread that may not block, is released in
/// the background. With a re-entrant hold, only the last guard releases.
///
/// A thread-local guard is released when its thread ends, in the background if need be. A guard that is forgotten ([`std::mem::forget`]) is held until
/// the client is [closed](super::Client::close), also when its thread has ended.
#[must_use = "the lock is released when the guard is dropped"]
pub struct Guard<G: Held, T = ThisThread> {
    /// Gone only in the methods that end the guard, and in its drop: nobody can look at it then.
    inner: Option<G>,
    signal: LossSignal,
    pub(super) executor: Arc<dyn Executor>,
    threads: PhantomData<T>,
}

/// A held lock: as [`bowline::LockGuard`](crate::LockGuard).
pub type LockGuard<T = ThisThread> = Guard<crate::LockGuard, T>;
/// A read-write lock held for reading: as [`bowline::ReadGuard`](crate::ReadGuard).
pub type ReadGuard<T = ThisThread> = Guard<crate::ReadGuard, T>;
/// A read-write lock held for writing: as [`bowline::WriteGuard`](crate::WriteGuard).
pub type WriteGuard<T = ThisThread> = Guard<crate::WriteGuard, T>;
/// Permits of a semaphore: as [`bowline::Permit`](crate::Permit). Permits have no holder, so any thread may have them.
pub type Permit = Guard<crate::Permit, AnyThread>;

impl<G: Held, T> Guard<G, T> {
    pub(super) fn new(guard: G, executor: &Arc<dyn Executor>) -> Self {
        Self { signal: guard.lost_signal(), inner: Some(guard), executor: executor.clone(), threads: PhantomData }
    }

    /// Runs what ends the guard.
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

    /// The name of what is held.
    pub fn name(&self) -> &str {
        self.inner.as_ref().map_or("", G::name)
    }

    /// Whether the holder may still act. Costs no command: it is the client's own count of the lease. Code that does not
    /// await can only ask: before every step, and after every pause.
    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// What is left of the lease by the client's own, careful count; zero once it is lost.
    pub fn remaining(&self) -> Duration {
        self.inner.as_ref().map_or(Duration::ZERO, G::remaining)
    }

    /// Blocks until the holder must stop, and says why: for a thread that watches over the work of others.
    ///
    /// # Errors
    /// Those of a thread that may not block, and [`Closed`](crate::ErrorKind::Closed) of a runtime that is shut down.
    pub fn lost(&self) -> Result<Loss> {
        let Some(guard) = &self.inner else { return Ok(Loss::Gone) };
        block(&self.executor, "lost", Box::pin(async { Ok(guard.lost().await) }))
    }

    /// As [`lost`](Self::lost), for so long at most. `None`: not lost by then.
    ///
    /// # Errors
    /// As [`lost`](Self::lost).
    pub fn lost_within(&self, duration: Duration) -> Result<Option<Loss>> {
        let Some(guard) = &self.inner else { return Ok(Some(Loss::Gone)) };
        let executor = &self.executor;
        block(executor, "lost", Box::pin(async { Ok(timeout(executor, duration, guard.lost()).await) }))
    }

    /// For threads and tasks that do not have the guard: see [`bowline::LockGuard::lost_signal`](crate::LockGuard::lost_signal).
    pub fn lost_signal(&self) -> LossSignal {
        self.signal.clone()
    }

    /// Prolongs a fixed lease: see [`bowline::LockGuard::extend`](crate::LockGuard::extend).
    ///
    /// # Errors
    /// As there, and of a thread that may not block.
    pub fn extend(&self, lease: Duration) -> Result<()> {
        match &self.inner {
            Some(guard) => block(&self.executor, "extend", Box::pin(guard.extend(lease))),
            None => Err(Error::new(ErrorKind::Closed, "extend")),
        }
    }

    /// Releases, and says whether the lease was held to the end. With a re-entrant hold, only the last guard releases; the
    /// others just go.
    ///
    /// # Errors
    /// As the async guard's `release`, and of a thread that may not block: it is released in the background then.
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
    /// The token of the last writer before: see [`bowline::ReadGuard::token`](crate::ReadGuard::token).
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
    /// How many permits this is.
    pub fn count(&self) -> u32 {
        self.inner.as_ref().map_or(0, crate::Permit::count)
    }
}

impl<G: Held, T> Drop for Guard<G, T> {
    fn drop(&mut self) {
        let Some(guard) = self.inner.take() else { return };
        if threads::ends() {
            return;
        }
        let executor = &self.executor;
        let release = async { Ok(timeout(executor, LONGEST_DROP, guard.release()).await) };
        // What could not be confirmed goes on in the background, and there is nobody to tell.
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
