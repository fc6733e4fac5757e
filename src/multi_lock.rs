//! Several primitives, acquired together.

use crate::acquire::builder::choices::Part;
use crate::acquire::builder::{Acquire, TryAcquire};
use crate::lock::Lock;
use crate::rw_lock::RwLock;
use crate::semaphore::Semaphore;

mod acquire;
mod guard;
mod holds;
mod order;

pub use guard::MultiGuard;

/// Several primitives that are acquired together: all of them, or none.
///
/// [`Client::lock_all`](crate::Client::lock_all) returns one for the locks of one client. [`new`](Self::new) starts one
/// for any mix of locks, readers, writers and permits, also of different clients. A `MultiLock` sends nothing and
/// stores nothing in Redis. It can be cloned and acquired any number of times.
///
/// # Guarantees
/// - All or none: the [`MultiGuard`] has every hold. If one of them cannot be acquired, those that were acquired before
///   are released, in the reverse order. The same happens after a timeout, and if the future is dropped at any point.
/// - Acquisitions of several names do not deadlock each other. Every process acquires one primitive after the other, in
///   one order: by kind (locks, read-write locks, semaphores, names of a [`RedLock`](crate::RedLock)), by name, and by
///   prefix. The order in which the program names them does not matter. So no acquisition is given up and retried, as
///   it has to be where each program chooses its own order.
/// - Every hold is an ordinary one, with its own place in its queue, its own renewed lease and its own token, and has
///   the guarantees of its primitive.
/// - A primitive that is named twice is one hold. Permits of one semaphore add up: `permits(&uploads,
///   2).permits(&uploads, 3)` is one request for five.
///
/// # Not guaranteed
/// - The acquisition is not one step. The first ones are held, and block others, while the acquisition waits for the
///   next one. Set a [`timeout`](Acquire::timeout), and do not mix names in high demand with names that are held for
///   long.
/// - A future that has acquired the first ones holds them until it is polled again or dropped. Its timeout passes only
///   while it is polled.
/// - A program that already holds one of the names, or another name, and then acquires several, can still deadlock with
///   others. Acquire all of them at once, or set a timeout.
/// - Primitives of the same kind, name and prefix on different servers are acquired in the order in which they are
///   named. Name them in the same order everywhere.
/// - Two clients of one server are not recognised as such, unless one is a clone of the other. A lock that is named
///   through both waits for itself. Name the primitives of one server through one client.
///
/// # Options
/// The builders are those of a single acquisition, and every option applies to each hold, except
/// [`timeout`](Acquire::timeout), which limits the whole acquisition. [`max_waiters`](Acquire::max_waiters) counts the
/// waiters of each name. [`hold_at_most`](Acquire::hold_at_most) and [`expires_after`](Acquire::expires_after) count
/// from the grant of each hold, so they include the wait for the names after it.
///
/// A [`Holder`](crate::Holder) re-enters those that it holds already. Permits are not re-entered.
///
/// # Errors
/// Those of [`Acquire`], with the name that failed. In addition:
/// - [`InvalidInput`](crate::ErrorKind::InvalidInput): nothing is named, or a semaphore is named with two limits.
///   Nothing was sent.
/// - [`WouldDeadlock`](crate::ErrorKind::WouldDeadlock): one read-write lock is named for reading and for writing.
///   Nothing was sent.
/// - [`Lost`](crate::ErrorKind::Lost): a hold was lost during the wait for the others. The others are released.
///
/// # Examples
/// ```no_run
/// # use std::time::Duration;
/// use bowline::MultiLock;
///
/// # async fn example(client: bowline::Client) -> bowline::Result<()> {
/// # async fn transfer(_: Option<bowline::Token>, _: Option<bowline::Token>) {}
/// let guard = client.lock_all(["alice", "bob"]).acquire().timeout(Duration::from_secs(5)).await?;
/// guard.protect(transfer(guard.token("alice"), guard.token("bob"))).await?;
/// guard.release().await?;
///
/// let job = MultiLock::new()
///     .lock(&client.lock("orders:42"))
///     .read(&client.rw_lock("prices"))
///     .permits(&client.semaphore("workers", 8), 2);
/// if let Some(guard) = job.try_acquire().await? {
///     guard.release().await?;
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "nothing is acquired before `acquire` or `try_acquire` is awaited"]
pub struct MultiLock {
    parts: Vec<Part>,
}

impl MultiLock {
    /// Names nothing yet. To acquire nothing is an [`InvalidInput`](crate::ErrorKind::InvalidInput) error.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a lock.
    pub fn lock(self, lock: &Lock) -> Self {
        self.with(lock.lock())
    }

    /// Adds a read-write lock, to be held for reading.
    pub fn read(self, lock: &RwLock) -> Self {
        self.with(lock.read())
    }

    /// Adds a read-write lock, to be held for writing.
    pub fn write(self, lock: &RwLock) -> Self {
        self.with(lock.write())
    }

    /// Adds `count` permits of a semaphore. Zero is an [`InvalidInput`](crate::ErrorKind::InvalidInput) error of the
    /// acquisition.
    pub fn permits(self, semaphore: &Semaphore, count: u32) -> Self {
        self.with(semaphore.acquire_many(count))
    }

    /// Acquires all of them, one after the other, and waits while others hold one of them. Set options on the result,
    /// then await it.
    ///
    /// # Cancel safety
    /// That of [`Acquire`], for all of them: holds that were acquired already are released in the background.
    pub fn acquire(&self) -> Acquire<MultiGuard> {
        Acquire::of_several(&self.parts, "acquire")
    }

    /// Acquires all of them without waiting for other holders. Resolves to `None` if others hold one of them or wait
    /// for it. Those that were acquired before are released then, and their releases are awaited, within the
    /// [`timeout`](TryAcquire::timeout) if one is set.
    ///
    /// Of several attempts at the same time, at least one succeeds if nothing else is in the way.
    ///
    /// # Cancel safety
    /// That of [`acquire`](Self::acquire).
    pub fn try_acquire(&self) -> TryAcquire<MultiGuard> {
        TryAcquire::of_several(&self.parts, "try_acquire")
    }

    /// Adds the primitives of `acquisition`, whose options were not changed from the defaults.
    pub(crate) fn with<G>(mut self, acquisition: Acquire<G>) -> Self {
        self.parts.extend_from_slice(acquisition.parts());
        self
    }
}
