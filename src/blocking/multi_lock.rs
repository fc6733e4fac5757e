//! Several primitives, acquired together.

use super::acquire::{Acquire, TryAcquire};
use super::lock::Lock;
use super::rw_lock::RwLock;
use super::semaphore::Semaphore;
use super::thread::this_thread;
use crate::MultiGuard;

/// Several primitives that blocking code acquires together: all of them, or none. Guarantees, order and errors are
/// those of [`bowline::MultiLock`](crate::MultiLock).
///
/// The guard belongs to this thread, which re-enters what it holds already.
///
/// # Examples
/// ```no_run
/// # fn example(client: bowline::blocking::Client) -> bowline::Result<()> {
/// let guard = client.lock_all(["alice", "bob"]).acquire().block()?;
/// for (name, token) in guard.tokens() {
///     println!("writing to {name} with token {token}");
/// }
/// guard.release()
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "nothing is acquired before `acquire` or `try_acquire` blocks"]
pub struct MultiLock {
    pub(super) inner: crate::MultiLock,
}

impl MultiLock {
    /// Names nothing yet: see [`bowline::MultiLock::new`](crate::MultiLock::new).
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a lock.
    pub fn lock(self, lock: &Lock) -> Self {
        Self { inner: self.inner.lock(&lock.inner) }
    }

    /// Adds a read-write lock, to be held for reading.
    pub fn read(self, lock: &RwLock) -> Self {
        Self { inner: self.inner.read(&lock.inner) }
    }

    /// Adds a read-write lock, to be held for writing.
    pub fn write(self, lock: &RwLock) -> Self {
        Self { inner: self.inner.write(&lock.inner) }
    }

    /// Adds `count` permits of a semaphore: see [`bowline::MultiLock::permits`](crate::MultiLock::permits).
    pub fn permits(self, semaphore: &Semaphore, count: u32) -> Self {
        Self { inner: self.inner.permits(&semaphore.inner, count) }
    }

    /// Acquires all of them for this thread: see [`bowline::MultiLock::acquire`](crate::MultiLock::acquire).
    pub fn acquire(&self) -> Acquire<MultiGuard> {
        self.inner.acquire().holder(&this_thread()).with_guard()
    }

    /// Acquires all of them for this thread if none needs a wait: see
    /// [`bowline::MultiLock::try_acquire`](crate::MultiLock::try_acquire).
    pub fn try_acquire(&self) -> TryAcquire<MultiGuard> {
        self.inner.try_acquire().holder(&this_thread()).with_guard()
    }
}

impl From<crate::MultiLock> for MultiLock {
    fn from(inner: crate::MultiLock) -> Self {
        Self { inner }
    }
}
