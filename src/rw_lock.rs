//! The read-write lock.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::acquire::builder::{Acquire, TryAcquire};
use crate::acquire::resume::resume;
use crate::ask::ask_to_release;
use crate::drop_waiters::drop_waiters;
use crate::error::Result;
use crate::handle::Primitive;
use crate::hold::guard::{ReadGuard, UpgradableGuard, WriteGuard};
use crate::hold::hold_handle::HoldHandle;
use crate::hold::owner::HoldSource;
use crate::inspect::{Labels, clients_of};
use crate::names::changes::HoldChanges;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::kind::Kind;
use crate::protocol::limits::{MAX_LISTED, READ, UPGRADABLE, WRITE};
use crate::protocol::names::PrimitiveKind;
use crate::protocol::permits::reply::PermitsInspected;
use crate::revoke::{Revoked, Whose, force_release};

pub use change::Upgrade;
pub use state::RwLockState;

mod change;
mod state;

/// A named lock that many hold for reading at the same time, or one for writing.
///
/// Returned by [`Client::rw_lock`](crate::Client::rw_lock). A handle is cheap to make and to clone, and stores nothing
/// in Redis.
///
/// # Guarantees
/// Those of [`Lock`](crate::Lock), and:
/// - While a [`WriteGuard`] is valid, no other guard of the name is valid. While a [`ReadGuard`] is valid, no write
///   guard is. While an [`UpgradableGuard`] is valid, no write guard and no other upgradable one is.
/// - Waiters are served in the order of arrival, so neither readers nor writers starve. Consecutive readers in the
///   queue are granted together. Only an [upgrade](UpgradableGuard::upgrade) goes before all
///   waiters, so a program that downgrades and upgrades again and again may keep them out.
/// - Each write guard has a larger token than the writers before it. The token of a read guard is at least that of the
///   writer before it, and smaller than that of the writer after it.
///
/// # Not guaranteed
/// The lock is a lease with fencing tokens, not a mutex: see [`LockGuard`](crate::LockGuard).
///
/// # Re-entry
/// A [`Holder`](crate::Holder) that reads may read again. A holder that writes may write or read again, and the hold
/// stays a writer's until its last guard is gone. A holder that reads and asks to write gets
/// [`WouldDeadlock`](crate::ErrorKind::WouldDeadlock) at once, also if it reads by an upgradable guard, or asks for
/// one. Without a holder, such an acquisition cannot be recognised: it waits until its timeout. A holder that reads by
/// an upgradable guard may read again in both ways.
///
/// # Redis keys
/// - `<prefix>:rw:{<name>}` and `...:leases`, the holds, expire with the longest lease.
/// - `...:queue` and `...:tickets`, the waiters, expire 45 min to 1 h after the last heartbeat.
/// - `...:fence`, the counter of the tokens, expires 65 min after the last grant or after twice the lease, whichever is
///   later; after a grant to a reader up to 5 min earlier.
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
/// // Waiting readers are granted now. Waiting writers are not.
/// let reading = writing.downgrade().await?;
/// reading.release().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct RwLock {
    primitive: Primitive,
    /// How long its writers' acquisitions keep their holds.
    retained: Option<Duration>,
}

impl RwLock {
    pub(crate) fn new(source: &Arc<HoldSource>, name: &str) -> Self {
        Self { primitive: Primitive::new(source, Kind::ReadWrite, name), retained: None }
    }

    /// Makes all acquisitions of this handle for writing [retained](Acquire::retained) for that time.
    /// [`fair`](Acquire::fair) undoes this for one acquisition. Readers of other clients, and of this one, ask for an
    /// idle lock as writers of other clients do.
    pub fn retained(self, time: Duration) -> Self {
        Self { retained: Some(time), ..self }
    }

    /// Acquires for reading, and waits while others write. Set options on the result, then await it.
    pub fn read(&self) -> Acquire<ReadGuard> {
        Acquire::new(&self.primitive, "read", READ)
    }

    /// Acquires for reading with the right to [upgrade](UpgradableGuard::upgrade) to the writer, and waits while others
    /// write or have this right. It keeps no plain reader out. Set options on the result, then await it.
    ///
    /// For work that reads first and then may have to write: nobody writes between the two.
    pub fn upgradable_read(&self) -> Acquire<UpgradableGuard> {
        Acquire::new(&self.primitive, "upgradable_read", UPGRADABLE)
    }

    /// Acquires for writing, and waits while others read or write. Set options on the result, then await it.
    pub fn write(&self) -> Acquire<WriteGuard> {
        Acquire::new(&self.primitive, "write", WRITE).retained_for(self.retained)
    }

    /// Acquires for reading without waiting. Resolves to `None` if another acquisition writes or waits.
    pub fn try_read(&self) -> TryAcquire<ReadGuard> {
        TryAcquire::new(&self.primitive, "try_read", READ)
    }

    /// Acquires for reading with the right to upgrade, without waiting. Resolves to `None` if another acquisition
    /// writes, has this right, or waits.
    pub fn try_upgradable_read(&self) -> TryAcquire<UpgradableGuard> {
        TryAcquire::new(&self.primitive, "try_upgradable_read", UPGRADABLE)
    }

    /// Acquires for writing without waiting. Resolves to `None` if another acquisition holds the lock or waits.
    pub fn try_write(&self) -> TryAcquire<WriteGuard> {
        TryAcquire::new(&self.primitive, "try_write", WRITE).retained_for(self.retained)
    }

    /// Takes over a hold that another program has left with [`WriteGuard::into_handle`]. The hold gets a new lease, as
    /// long as the one that it had, and a new fencing token. A lease that the watchdog renewed is renewed by this
    /// client.
    ///
    /// Each handle is good for one hold: of several callers, one gets it. A hold that its former client still renews is
    /// taken from it, and that client is told ([`Loss::Gone`](crate::Loss::Gone)) when it renews the next time: give
    /// the token to the storage.
    ///
    /// # Errors
    /// - [`Lost`](crate::ErrorKind::Lost): the hold has ended, or it was resumed already.
    /// - [`InvalidInput`](crate::ErrorKind::InvalidInput): the handle is of another name or another kind of primitive.
    ///   Nothing was sent.
    /// - The errors of a server that does not answer or refuses, and
    ///   [`Unacknowledged`](crate::ErrorKind::Unacknowledged). The hold is then still left for another attempt, or it
    ///   was resumed: it is released in the background in that case, and the handle is of no more use.
    ///
    /// # Cancel safety
    /// If the future is dropped, the hold is still left for another attempt, or it was resumed and is released in the
    /// background.
    pub async fn resume_write(&self, handle: &HoldHandle) -> Result<WriteGuard> {
        resume(&self.primitive, "resume_write", handle, Some(WRITE)).await
    }

    /// As [`resume_write`](Self::resume_write), for a reader, which keeps its token.
    ///
    /// # Errors
    /// Those of [`resume_write`](Self::resume_write).
    ///
    /// # Cancel safety
    /// That of [`resume_write`](Self::resume_write).
    pub async fn resume_read(&self, handle: &HoldHandle) -> Result<ReadGuard> {
        resume(&self.primitive, "resume_read", handle, Some(READ)).await
    }

    /// As [`resume_write`](Self::resume_write), for an upgradable reader, which keeps its token.
    ///
    /// # Errors
    /// Those of [`resume_write`](Self::resume_write).
    ///
    /// # Cancel safety
    /// That of [`resume_write`](Self::resume_write).
    pub async fn resume_upgradable(&self, handle: &HoldHandle) -> Result<UpgradableGuard> {
        resume(&self.primitive, "resume_upgradable", handle, Some(UPGRADABLE)).await
    }

    /// Reads who holds the lock and how many wait. Both are read at the same moment, and may have changed when the
    /// answer arrives.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for an invalid name, and the errors of a server that does not
    /// answer or refuses.
    ///
    /// # Cancel safety
    /// Reads only. Dropping the future changes nothing in Redis.
    pub async fn inspect(&self) -> Result<RwLockState> {
        let PermitsInspected { holds, waiters, queue, now, .. } =
            self.primitive.ask("inspect", |scripts, keys| scripts.inspect(keys, WRITE, MAX_LISTED)).await?;
        self.primitive.context().observe(now);
        // Asked now, before the labels are read.
        let writer = holds.iter().find(|hold| hold.units == WRITE).and_then(|hold| AttemptId::parse(&hold.attempt_id));
        let is_idle = writer.and_then(|id| self.primitive.context().engine.is_idle(id));
        let ids = holds.iter().map(|hold| &*hold.attempt_id);
        let labels = Labels::read(self.primitive.context(), clients_of(ids, &queue)).await;
        Ok(RwLockState::of(&labels, (holds, is_idle), (waiters, queue)))
    }

    /// Reports who holds the lock, to read or to write, and then the grants, releases and losses: for dashboards and
    /// logs. A hold that comes and goes between two looks is missing: see [`Lock::changes`](crate::Lock::changes).
    /// Sends nothing before it is polled.
    pub fn changes(&self) -> HoldChanges {
        HoldChanges::of_handle(&self.primitive, PrimitiveKind::RwLock)
    }

    /// Takes the lock away from its readers or its writer and hands it to the next waiters. Meant for operators.
    ///
    /// Takes at most 1,000 holds: of those that there are when the call begins, those whose leases end first. The
    /// clients of the holders are notified at once ([`Loss::Revoked`](crate::Loss::Revoked)) if they are subscribed.
    /// Until the notification arrives the old holders may still act. See [`Revoked::token`].
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for an invalid name, and the errors of a server that does
    /// not answer or refuses. Some of the holds may have been taken then.
    ///
    /// # Cancel safety
    /// After the future is dropped, any of the holds may or may not have been taken. Nothing is taken from those that
    /// were granted after the call began.
    pub async fn force_release(&self, whose: Whose) -> Result<Revoked> {
        force_release(&self.primitive, WRITE, whose).await
    }

    /// Takes acquisitions that wait out of the queue: see [`Lock::drop_waiters`](crate::Lock::drop_waiters).
    ///
    /// # Errors
    /// Those of [`Lock::drop_waiters`](crate::Lock::drop_waiters).
    ///
    /// # Cancel safety
    /// That of [`Lock::drop_waiters`](crate::Lock::drop_waiters).
    pub async fn drop_waiters(&self, whose: Whose) -> Result<u64> {
        drop_waiters(&self.primitive, whose).await
    }

    /// Asks holders to release, as [`Lock::ask_to_release`](crate::Lock::ask_to_release) does, and returns how many: at
    /// most the first 1,000.
    ///
    /// # Errors
    /// Those of [`Lock::ask_to_release`](crate::Lock::ask_to_release).
    ///
    /// # Cancel safety
    /// That of [`Lock::ask_to_release`](crate::Lock::ask_to_release).
    pub async fn ask_to_release(&self, whose: Whose) -> Result<u64> {
        ask_to_release(&self.primitive, whose).await
    }
}

impl fmt::Debug for RwLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RwLock").field("name", &self.primitive.name()).finish_non_exhaustive()
    }
}
