//! The guards.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use super::marker::{AnyThread, ThisThread};
use super::thread;
use super::thread::block;
use crate::runtime::timeout;
use crate::{Executor, Held, HoldHandle, Result};

/// How long the drop of a guard waits for the server.
pub(super) const LONGEST_DROP: Duration = Duration::from_secs(1);

/// A guard for blocking code. It wraps `G`, a guard of the async API, and dereferences to it: `name`, `is_valid`,
/// `remaining`, `lost_signal`, and `token` or `count` are methods of `G`.
///
/// `T` says which threads the guard may move to. A guard of [`ThisThread`] belongs to the thread that acquired it and
/// is not `Send`. A guard of [`AnyThread`] is `Send`: it belongs to an explicit [`Holder`](crate::Holder), or is a
/// permit. Both are `Sync`, so a scoped thread may watch a guard that it borrows.
///
/// Blocking code cannot be stopped when its lease is lost. It should check [`is_valid`](Held::is_valid) before each
/// step and after each pause.
///
/// # Dropping
/// The drop releases and blocks until the server has confirmed the release, for at most 1 s. After that time the
/// release continues in the background, as it does on a thread that may not block. If several guards of one holder
/// share a hold, only the last one releases it.
///
/// A guard in a thread-local is released when its thread ends, possibly in the background. A forgotten guard
/// ([`std::mem::forget`]) is held until the client is [closed](super::Client::close), even after its thread has ended.
///
/// # Examples
/// ```no_run
/// # fn example(client: bowline::blocking::Client) -> bowline::Result<()> {
/// # fn write(_: bowline::Token, _: u32) {}
/// let guard = client.lock("orders:42").lock().block()?;
/// for part in 0..10 {
///     if !guard.is_valid() {
///         break;
///     }
///     write(guard.token(), part);
/// }
/// guard.release()
/// # }
/// ```
#[must_use = "the lock is released when the guard is dropped"]
pub struct Guard<G: Held, T = ThisThread> {
    // This field is dropped before `on_drop`, so that `on_drop` has the last reference to the hold.
    guard: G,
    on_drop: OnDrop<G>,
    threads: PhantomData<T>,
}

/// A held lock, with the methods of [`Guard`] and of [`bowline::LockGuard`](crate::LockGuard).
pub type LockGuard<T = ThisThread> = Guard<crate::LockGuard, T>;
/// A read-write lock held for reading, with the methods of [`Guard`] and of [`bowline::ReadGuard`](crate::ReadGuard).
pub type ReadGuard<T = ThisThread> = Guard<crate::ReadGuard, T>;
/// A read-write lock held for reading, with the right to upgrade: see
/// [`bowline::UpgradableGuard`](crate::UpgradableGuard). It also has the methods of [`Guard`].
pub type UpgradableGuard<T = ThisThread> = Guard<crate::UpgradableGuard, T>;
/// A read-write lock held for writing, with the methods of [`Guard`] and of [`bowline::WriteGuard`](crate::WriteGuard).
pub type WriteGuard<T = ThisThread> = Guard<crate::WriteGuard, T>;
/// Several holds, with the methods of [`Guard`] and of [`bowline::MultiGuard`](crate::MultiGuard).
pub type MultiGuard<T = ThisThread> = Guard<crate::MultiGuard, T>;
/// A held lock that Java programs share, with the methods of [`Guard`] and of
/// [`bowline::RedissonGuard`](crate::RedissonGuard).
pub type RedissonGuard<T = ThisThread> = Guard<crate::RedissonGuard, T>;
/// A held fenced lock that Java programs share, with the methods of [`Guard`] and of
/// [`bowline::RedissonFencedGuard`](crate::RedissonFencedGuard).
pub type RedissonFencedGuard<T = ThisThread> = Guard<crate::RedissonFencedGuard, T>;
/// A permit that Java programs share, with the methods of [`Guard`] and of
/// [`bowline::RedissonPermitGuard`](crate::RedissonPermitGuard). It has no holder, so it may move to any thread.
pub type RedissonPermitGuard = Guard<crate::RedissonPermitGuard, AnyThread>;
/// Permits of a semaphore, with the methods of [`Guard`] and of [`bowline::Permit`](crate::Permit). Permits have no
/// holder, so they may move to any thread.
pub type Permit = Guard<crate::Permit, AnyThread>;

impl<G: Held, T> Guard<G, T> {
    pub(super) fn new(guard: G, executor: &Arc<dyn Executor>) -> Self {
        let on_drop = OnDrop { guard: Some(guard.share()), executor: executor.clone() };
        Self { guard, on_drop, threads: PhantomData }
    }

    /// The async guard, which no longer blocks when it is dropped.
    pub(super) fn into_async(self) -> (G, Arc<dyn Executor>) {
        let Self { guard, mut on_drop, .. } = self;
        on_drop.guard = None;
        (guard, on_drop.executor.clone())
    }

    /// Changes what the guard has of its hold. The drop then gives back what it has afterwards.
    pub(super) fn with_inner<O>(&mut self, change: impl FnOnce(&mut G, &Arc<dyn Executor>) -> O) -> O {
        let Self { guard, on_drop, .. } = self;
        let changed = change(guard, &on_drop.executor);
        on_drop.guard = Some(guard.share());
        changed
    }

    /// Blocks until the hold is lost, and returns the reason. Meant for a thread that watches the work of others.
    ///
    /// # Errors
    /// [Those of blocking](crate::blocking).
    pub fn lost(&self) -> Result<G::Lost> {
        let Self { guard, on_drop, .. } = self;
        block(&on_drop.executor, "lost", Box::pin(async { Ok(guard.lost().await) }))
    }

    /// Blocks until the hold is lost, for at most `duration`. `None` means that it was not lost in that time.
    ///
    /// # Errors
    /// [Those of blocking](crate::blocking).
    pub fn lost_within(&self, duration: Duration) -> Result<Option<G::Lost>> {
        let (guard, executor) = (&self.guard, &self.on_drop.executor);
        block(executor, "lost", Box::pin(async { Ok(timeout(executor, duration, guard.lost()).await) }))
    }

    /// Prolongs a fixed lease: see [`bowline::LockGuard::extend`](crate::LockGuard::extend).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn extend(&self, lease: Duration) -> Result<()> {
        block(&self.on_drop.executor, "extend", Box::pin(self.guard.extend(lease)))
    }

    /// Leaves the hold in Redis until its lease ends, and does not block: see
    /// [`bowline::LockGuard::keep`](crate::LockGuard::keep).
    ///
    /// # Errors
    /// Those of the async method.
    pub fn keep(self) -> Result<()> {
        self.into_async().0.keep()
    }

    /// Releases, and blocks until the server has confirmed it: see
    /// [`bowline::LockGuard::release`](crate::LockGuard::release). If several guards of one holder share the hold, only
    /// the last one releases it.
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking). On a thread that may not block, the release
    /// continues in the background.
    pub fn release(self) -> Result<()> {
        let (guard, executor) = self.into_async();
        block(&executor, "release", Box::pin(guard.release()))
    }
}

impl<G: Held, T> Deref for Guard<G, T> {
    type Target = G;

    fn deref(&self) -> &G {
        &self.guard
    }
}

impl<G: Held, T> fmt::Debug for Guard<G, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guard.fmt(f)
    }
}

/// Blocks on the release when its guard is dropped.
struct OnDrop<G: Held> {
    /// A second guard of the same hold. `None` after the blocking guard was converted to an async one.
    guard: Option<G>,
    executor: Arc<dyn Executor>,
}

impl<G: Held> Drop for OnDrop<G> {
    fn drop(&mut self) {
        let Some(guard) = self.guard.take() else { return };
        if thread::ends() {
            return;
        }
        let executor = &self.executor;
        let release = async { Ok(timeout(executor, LONGEST_DROP, guard.release()).await) };
        // A drop cannot report a failure. A release that was not confirmed continues in the background.
        let _ = block(executor, "release", Box::pin(release));
    }
}

macro_rules! left {
    ($($guard:ident),+) => {$(
        impl<T> Guard<crate::$guard, T> {
            /// Leaves the hold in Redis for another program, and does not block: see
            #[doc = concat!("[`bowline::", stringify!($guard), "::into_handle`](crate::", stringify!($guard), "::into_handle).")]
            ///
            /// # Errors
            /// Those of the async method.
            pub fn into_handle(self) -> Result<HoldHandle> {
                self.into_async().0.into_handle()
            }
        }
    )+};
}

left!(LockGuard, ReadGuard, UpgradableGuard, WriteGuard, Permit);
