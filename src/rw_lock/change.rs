//! Readers that become the writer, and the writer that becomes a reader.

use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::hold::exchange::change;
use crate::hold::guard::{ReadGuard, Share, UpgradableGuard, WriteGuard};
use crate::hold::owner::{HoldOwner, check_not_lost};
use crate::hold::upgrade::upgrade;
use crate::protocol::limits::{READ, UPGRADABLE, WRITE};

impl WriteGuard {
    /// Turns this writer into a reader in one step. No other writer is granted in between, and the readers at the head
    /// of the queue are granted too.
    ///
    /// The reader keeps the token. A fixed lease starts over and is never shortened. The hold leaves its
    /// [cohort](crate::Acquire::non_fair). If other guards of the same [`Holder`](crate::Holder) share the hold, it
    /// stays a writer's until all of them are gone.
    ///
    /// # Errors
    /// [`Lost`](crate::ErrorKind::Lost), [`Unacknowledged`](crate::ErrorKind::Unacknowledged),
    /// [`Closed`](crate::ErrorKind::Closed), [`Unavailable`](crate::ErrorKind::Unavailable),
    /// [`Refused`](crate::ErrorKind::Refused) and other errors of the server. The guard is consumed, and its hold is
    /// released in the background.
    ///
    /// # Cancel safety
    /// Dropping the future releases the hold in the background.
    pub async fn downgrade(self) -> Result<ReadGuard> {
        Ok(ReadGuard::new(change_alone(self.owned, "downgrade", READ).await?))
    }

    /// As [`downgrade`](Self::downgrade), to a reader that may upgrade again.
    ///
    /// # Errors
    /// Those of [`downgrade`](Self::downgrade).
    ///
    /// # Cancel safety
    /// That of [`downgrade`](Self::downgrade).
    pub async fn downgrade_to_upgradable(self) -> Result<UpgradableGuard> {
        Ok(UpgradableGuard::new(change_alone(self.owned, "downgrade_to_upgradable", UPGRADABLE).await?))
    }
}

/// The outcome of [`ReadGuard::try_upgrade`], [`UpgradableGuard::try_upgrade`] and [`UpgradableGuard::upgrade_within`].
/// `W` and `R` are the guards: those of the async API by default, or those of the [blocking
/// API](crate::blocking::Upgrade).
#[derive(Debug)]
#[must_use = "the lock is released when the guard is dropped"]
pub enum Upgrade<W = WriteGuard, R = ReadGuard> {
    /// The guard was the only reader. It writes now, with a new token.
    Writing(W),
    /// Others read too, or the guard shares its hold with others of its holder or with a
    /// [`run`](crate::Acquire::run). It still reads, with the same token.
    ///
    /// Two plain readers that both want to write would wait for each other, so a [`ReadGuard`] cannot wait. Release it
    /// and acquire by [`RwLock::write`](crate::RwLock::write) instead, or acquire by
    /// [`RwLock::upgradable_read`](crate::RwLock::upgradable_read) from the start.
    Shared(R),
}

impl ReadGuard {
    /// Turns the only reader into the writer in one step, ahead of all waiters. Never waits for others. A fixed lease
    /// starts over, also if others read.
    ///
    /// A guard that shares its hold with other guards of the same [`Holder`](crate::Holder) is not upgraded, unless the
    /// hold is already a writer's.
    ///
    /// # Errors
    /// [`Lost`](crate::ErrorKind::Lost), [`Unacknowledged`](crate::ErrorKind::Unacknowledged),
    /// [`Closed`](crate::ErrorKind::Closed), [`Unavailable`](crate::ErrorKind::Unavailable),
    /// [`Refused`](crate::ErrorKind::Refused) and other errors of the server. The guard is consumed, and its hold is
    /// released in the background.
    ///
    /// # Cancel safety
    /// Dropping the future releases the hold in the background.
    pub async fn try_upgrade(self) -> Result<Upgrade> {
        Ok(outcome(try_upgrade(self.owned).await?, Self::new))
    }
}

impl UpgradableGuard {
    /// Waits until the other readers have released, and turns this reader into the writer. It goes before all waiters,
    /// so nobody writes between what it has read and what it writes. Other clients' readers that come now wait until it
    /// has written, and so do those of its [`Holder`](crate::Holder).
    ///
    /// The writer has a new token. While it waits, the guard keeps its own hold. A fixed lease starts over when the
    /// upgrade begins and when it ends. It must not end during the wait, nor may a
    /// [limit](crate::Acquire::hold_at_most).
    ///
    /// It also waits for plain readers of this client, so a task that has a second guard without a `Holder` waits for
    /// itself. Use [`upgrade_within`](Self::upgrade_within) where that may happen.
    ///
    /// Takes one command if nobody else reads. Otherwise it usually takes two more, and the message of the last reader.
    ///
    /// # Errors
    /// The guard is consumed, and its hold is released in the background, unless it has other guards.
    /// - [`WouldDeadlock`](ErrorKind::WouldDeadlock): other guards of the same [`Holder`](crate::Holder) share the
    ///   hold, or a [`run`](crate::Acquire::run) does, so that it would wait for itself.
    /// - [`Dropped`](ErrorKind::Dropped): an operator has [taken it out of the queue](crate::RwLock::drop_waiters).
    /// - [`Lost`](ErrorKind::Lost), [`Unavailable`](ErrorKind::Unavailable), [`Refused`](ErrorKind::Refused),
    ///   [`Unacknowledged`](ErrorKind::Unacknowledged), [`Closed`](ErrorKind::Closed) and other errors of the server.
    ///
    /// # Cancel safety
    /// Dropping the future releases the hold in the background, and the readers that wait are served.
    pub async fn upgrade(self) -> Result<WriteGuard> {
        const OPERATION: &str = "upgrade";
        still_held(&self.owned, OPERATION)?;
        match outcome(Box::pin(upgrade(self.owned.into_owned(), OPERATION, None)).await?, Self::new) {
            Upgrade::Writing(guard) => Ok(guard),
            Upgrade::Shared(guard) => {
                let reason = "other guards of its holder, or `run`, share the hold";
                Err(Error::because(ErrorKind::WouldDeadlock, OPERATION, reason).with_name(guard.name()))
            }
        }
    }

    /// As [`upgrade`](Self::upgrade), but limits the wait. If it has not been granted when the timeout has passed,
    /// because others still read or because the server does not answer, it returns the guard as [`Upgrade::Shared`],
    /// and the guard reads on. It does the same at once if the guard shares its hold.
    ///
    /// The timeout limits the wait for others. The requests before and after it are repeated for the client's
    /// [`retry_timeout`](crate::ConfigBuilder::retry_timeout) at most.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput): the timeout is zero; use [`try_upgrade`](Self::try_upgrade).
    /// Otherwise those of [`upgrade`](Self::upgrade), but for `WouldDeadlock`.
    ///
    /// # Cancel safety
    /// That of [`upgrade`](Self::upgrade).
    pub async fn upgrade_within(self, timeout: Duration) -> Result<Upgrade<WriteGuard, Self>> {
        const OPERATION: &str = "upgrade_within";
        if timeout.is_zero() {
            let reason = "timeout is zero; use try_upgrade to upgrade without waiting";
            return Err(Error::because(ErrorKind::InvalidInput, OPERATION, reason).with_name(self.name()));
        }
        still_held(&self.owned, OPERATION)?;
        let upgraded = Box::pin(upgrade(self.owned.into_owned(), OPERATION, Some(timeout))).await?;
        Ok(outcome(upgraded, Self::new))
    }

    /// As [`ReadGuard::try_upgrade`].
    ///
    /// # Errors
    /// Those of [`ReadGuard::try_upgrade`].
    ///
    /// # Cancel safety
    /// That of [`ReadGuard::try_upgrade`].
    pub async fn try_upgrade(self) -> Result<Upgrade<WriteGuard, Self>> {
        Ok(outcome(try_upgrade(self.owned).await?, Self::new))
    }

    /// Turns this reader into a plain one in one step, so that another one may be upgradable. See
    /// [`WriteGuard::downgrade`].
    ///
    /// # Errors
    /// Those of [`WriteGuard::downgrade`].
    ///
    /// # Cancel safety
    /// That of [`WriteGuard::downgrade`].
    pub async fn downgrade(self) -> Result<ReadGuard> {
        Ok(ReadGuard::new(change_alone(self.owned, "downgrade", READ).await?))
    }
}

/// See [`change`].
async fn change_alone(owned: Share, operation: &'static str, units: u32) -> Result<Arc<HoldOwner>> {
    still_held(&owned, operation)?;
    Box::pin(change(owned.into_owned(), operation, units)).await
}

/// Takes all units if they are free. A hold that other guards share stays as it is.
async fn try_upgrade(owned: Share) -> Result<Arc<HoldOwner>> {
    if owned.hold.amount == WRITE {
        still_held(&owned, "try_upgrade")?;
        return Ok(owned.into_owned());
    }
    change_alone(owned, "try_upgrade", WRITE).await
}

fn outcome<R>(owned: Arc<HoldOwner>, reader: impl FnOnce(Arc<HoldOwner>) -> R) -> Upgrade<WriteGuard, R> {
    if owned.hold.amount == WRITE { Upgrade::Writing(WriteGuard::new(owned)) } else { Upgrade::Shared(reader(owned)) }
}

/// Checks the hold locally, because guards that share a hold change it without asking the server.
fn still_held(owned: &HoldOwner, operation: &'static str) -> Result<()> {
    check_not_lost(&owned.hold, operation, owned.context().now())
}
