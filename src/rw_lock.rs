//! The read-write lock.

use std::fmt;
use std::sync::Arc;

use crate::acquire::builder::{Acquire, TryAcquire};
use crate::context::Context;
use crate::error::Result;
use crate::guard::{ReadGuard, WriteGuard};
use crate::handle::Primitive;
use crate::lock::HolderState;
use crate::owned::{Owned, lost_error};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::kind::Kind;
use crate::protocol::limits::{READ, WRITE};
use crate::reentry::Reentry;

/// A named lock that many may hold for reading at a time, or one for writing. Made by
/// [`Client::rw_lock`](crate::Client::rw_lock).
///
/// # Guarantees
/// Those of [`Lock`](crate::Lock), and:
/// - While a [`WriteGuard`] is valid, no other guard of the name is. While a [`ReadGuard`] is valid, no writer's is.
/// - First come, first served: nobody passes a waiter, so that neither readers nor writers starve. Readers that wait one
///   behind the other enter together.
/// - Write guards have tokens that grow. The token of a read guard is between those of the writers before and after it;
///   it may be that of the last writer.
///
/// # Not guaranteed
/// The guards are leases, not a mutex's: see [`LockGuard`](crate::LockGuard).
///
/// # Re-entry
/// A [`Holder`](crate::Holder) may read while it reads, write while it writes, and read while it writes (the hold stays
/// a writer's until the last guard goes). Writing while it reads would wait for itself: that is
/// [`WouldDeadlock`](crate::ErrorKind::WouldDeadlock) at once. Without a holder nobody can know, and it waits until its
/// timeout.
///
/// # Redis keys
/// `<prefix>:rw:{<name>}` and `...:leases` for the longest lease, `...:queue` and `...:tickets` while somebody waits (at
/// most 1 h after the last sign of life), and `...:fence`, the counter of the tokens, for 1 h after the last grant, or
/// twice its lease.
///
/// # Examples
/// ```no_run
/// # async fn example(client: bowline::Client) -> bowline::Result<()> {
/// let prices = client.rw_lock("prices");
///
/// let reading = prices.read().await?;
/// reading.release().await?;
///
/// let writing = prices.write().await?;
/// println!("writing with token {}", writing.token());
/// // Readers that wait come in, writers do not.
/// let reading = writing.downgrade().await?;
/// reading.release().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct RwLock {
    primitive: Primitive,
}

impl RwLock {
    pub(crate) fn new(context: Arc<Context>, reentry: Arc<Reentry<Owned>>, name: &str) -> Self {
        Self { primitive: Primitive::new(context, reentry, Kind::ReadWrite, name) }
    }

    /// Acquires for reading. Await the result, or set options first.
    pub fn read(&self) -> Acquire<ReadGuard> {
        Acquire::new(&self.primitive, "read", READ, ReadGuard::new)
    }

    /// Acquires for writing. Await the result, or set options first.
    pub fn write(&self) -> Acquire<WriteGuard> {
        Acquire::new(&self.primitive, "write", WRITE, WriteGuard::new)
    }

    /// Acquires for reading if nobody writes and nobody waits; `None` if not.
    pub fn try_read(&self) -> TryAcquire<ReadGuard> {
        TryAcquire::new(&self.primitive, "try_read", READ, ReadGuard::new)
    }

    /// Acquires for writing if nobody has the lock and nobody waits; `None` if not.
    pub fn try_write(&self) -> TryAcquire<WriteGuard> {
        TryAcquire::new(&self.primitive, "try_write", WRITE, WriteGuard::new)
    }

    /// Who holds the lock and how many wait, as one consistent look. It may be outdated when it arrives.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a bad name; the server's, if it does not answer.
    ///
    /// # Cancel safety
    /// Changes nothing.
    pub async fn inspect(&self) -> Result<RwLockState> {
        let inspected = self.primitive.ask("inspect", |scripts, keys| scripts.inspect(keys, WRITE)).await?;
        self.primitive.context.observe(inspected.now);
        let mut state = RwLockState { writer: None, readers: Vec::new(), waiters: inspected.waiters };
        for hold in inspected.holds {
            let holder =
                HolderState { client: AttemptId::client_of(&hold.attempt_id), token: hold.token, remaining: hold.left };
            if hold.units == WRITE {
                state.writer = Some(holder);
            } else {
                state.readers.push(holder);
            }
        }
        Ok(state)
    }
}

/// What [`RwLock::inspect`] saw.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RwLockState {
    /// Who writes, if anybody does.
    pub writer: Option<HolderState>,
    /// Who reads: the thousand whose leases end first, if there are more.
    pub readers: Vec<HolderState>,
    /// How many tickets wait in Redis, as in [`LockState::waiters`](crate::LockState::waiters): writers that stand in a client's
    /// [line](Acquire::non_fair) are one ticket or none.
    pub waiters: u64,
}

impl fmt::Debug for RwLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RwLock").field("name", &self.primitive.name()).finish_non_exhaustive()
    }
}

impl WriteGuard {
    /// Goes on as a reader, in one step: no other writer comes in between, and the readers that wait next do come in.
    /// The token stays; a fixed lease begins anew, for at least what is left of it. A [line](Acquire::non_fair) goes on without it.
    ///
    /// While other guards of the same [`Holder`](crate::Holder) share the hold, it stays a writer's until they all are
    /// gone.
    ///
    /// # Errors
    /// [`Lost`](crate::ErrorKind::Lost), [`Unavailable`](crate::ErrorKind::Unavailable) and other answers of the server;
    /// the guard is gone then, and what it held is released in the background.
    ///
    /// # Cancel safety
    /// Dropping the future releases in the background.
    pub async fn downgrade(self) -> Result<ReadGuard> {
        still_held(&self.owned, "downgrade")?;
        match Arc::try_unwrap(self.owned) {
            Err(shared) => Ok(ReadGuard::new(shared)),
            Ok(owned) => Ok(ReadGuard::new(owned.change("downgrade", READ).await?)),
        }
    }
}

/// What came of [`ReadGuard::try_upgrade`].
#[derive(Debug)]
#[must_use = "the lock is released when the guard is dropped"]
pub enum Upgrade {
    /// The only reader writes now, with a token of its own.
    Writing(WriteGuard),
    /// Others read as well, and waiting for them could wait for ever: two readers that both want to write would wait
    /// for each other. The guard reads on, with the same token. Release it, and write by [`RwLock::write`].
    WouldDeadlock(ReadGuard),
}

impl ReadGuard {
    /// Goes on as the writer if nobody else reads, in one step and before those who wait. Never waits. A fixed lease begins
    /// anew, upgraded or not.
    ///
    /// A guard that shares its hold with others of the same [`Holder`](crate::Holder) is not upgraded; a guard got by
    /// reading while its holder writes is the writer's already.
    ///
    /// # Errors
    /// [`Lost`](crate::ErrorKind::Lost), [`Unavailable`](crate::ErrorKind::Unavailable) and other answers of the server;
    /// the guard is gone then, and what it held is released in the background.
    ///
    /// # Cancel safety
    /// Dropping the future releases in the background.
    pub async fn try_upgrade(self) -> Result<Upgrade> {
        still_held(&self.owned, "try_upgrade")?;
        if self.owned.hold.amount == WRITE {
            return Ok(Upgrade::Writing(WriteGuard::new(self.owned)));
        }
        match Arc::try_unwrap(self.owned) {
            Err(shared) => Ok(Upgrade::WouldDeadlock(Self::new(shared))),
            Ok(owned) => {
                let owned = owned.change("try_upgrade", WRITE).await?;
                Ok(if owned.hold.amount == WRITE {
                    Upgrade::Writing(WriteGuard::new(owned))
                } else {
                    Upgrade::WouldDeadlock(Self::new(owned))
                })
            }
        }
    }
}

/// Also of guards that share a hold, and ask the server nothing.
fn still_held(owned: &Owned, operation: &'static str) -> Result<()> {
    owned.hold.loss(owned.context.now()).map_or(Ok(()), |loss| Err(lost_error(&owned.hold, operation, loss)))
}
