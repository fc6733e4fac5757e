//! Permits of a semaphore, which can be split and merged.

use std::fmt;
use std::future::{Future, pending};
use std::iter::once;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use futures::stream::{FuturesUnordered, StreamExt};

use super::merge::MergeError;
use super::{LossSignal, NamedLoss, Share, loss, lost, protect, release, release_all};
use crate::engine::lease::Loss;
use crate::error::Result;
use crate::hold::extend::extend;
use crate::hold::owner::HoldOwner;

/// One or more permits of a [`Semaphore`](crate::Semaphore).
///
/// While the [`is_valid`](Self::is_valid) of several guards of one name returns `true`, they have at most as many
/// permits as the limit allows, with the exceptions of [`LockGuard`](crate::LockGuard). A drop gives the permits back
/// in the background.
///
/// There is no fencing token: several holders act at the same time, so an order of tokens could not tell storage which
/// of them is late.
///
/// [`split`](Self::split) makes two guards of one, which are released one by one. [`merge`](Self::merge) makes one of
/// two.
#[must_use = "the permits are given back when the guard is dropped"]
pub struct Permit {
    /// The permits of one acquisition.
    one: Share,
    /// Those of other acquisitions, which were merged into this guard.
    others: Vec<Share>,
}

impl Permit {
    pub(crate) fn new(owned: Arc<HoldOwner>) -> Self {
        Self { one: Share::new(owned), others: Vec::new() }
    }

    pub(super) fn shares(&self) -> impl Iterator<Item = &Share> {
        once(&self.one).chain(&self.others)
    }

    fn into_shares(self) -> impl Iterator<Item = Share> {
        once(self.one).chain(self.others)
    }

    /// The permits of one acquisition. If others were merged into them, the error is their name.
    pub(crate) fn into_only_share(self) -> Result<Share, Arc<str>> {
        if self.others.is_empty() { Ok(self.one) } else { Err(self.one.hold.keys.name.clone()) }
    }

    /// The number of permits that this guard holds.
    pub fn count(&self) -> u32 {
        self.shares().map(Share::units).sum()
    }

    /// Takes `count` permits out of this guard, into a guard of their own. `None`, and nothing is changed, if `count`
    /// is zero or not less than [`count`](Self::count): each of the two guards has at least one permit.
    ///
    /// Sends no command. The guards are released, dropped and kept one by one. A release gives the permits of its guard
    /// to the next waiters, in one command.
    ///
    /// # The lease
    /// The guards share the lease of their acquisition. It is renewed for as long as one of them exists. If it is lost,
    /// all of them are lost. [`extend`](Self::extend) prolongs it for all of them. A
    /// [`lost_signal`](Self::lost_signal) ends with the last of these guards. In [`Stats`](crate::Stats)
    /// and [`inspect`](crate::Semaphore::inspect) they are one hold.
    ///
    /// If the permits of one guard are [kept](Self::keep), they stay in Redis until the lease ends, and the client
    /// renews that until the last of the guards is gone. If it is closed before, it releases all of them. Permits of
    /// which some were given back are not handed off in a [cohort](crate::Acquire::non_fair): its next member gets
    /// permits from the server.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(client: bowline::Client) -> bowline::Result<()> {
    /// let mut three = client.semaphore("uploads", 8).acquire_many(3).await?;
    /// if let Some(one) = three.split(1) {
    ///     assert_eq!((three.count(), one.count()), (2, 1));
    ///     one.release().await?; // The two others are still held.
    /// }
    /// three.release().await
    /// # }
    /// ```
    pub fn split(&mut self, count: u32) -> Option<Self> {
        if count == 0 || count >= self.count() {
            return None;
        }
        let (mut taken, mut left) = (Vec::new(), count);
        // Whole shares first, the last merged first. At least a part of the first one stays.
        while let Some(share) = self.others.pop_if(|share| share.units() <= left) {
            left -= share.units();
            taken.push(share);
        }
        if left > 0 {
            taken.extend(self.others.last_mut().unwrap_or(&mut self.one).split(left));
        }
        let one = taken.pop()?;
        Some(Self { one, others: taken })
    }

    /// Adds the permits of `other`, which the same client holds of the same semaphore. Sends no command.
    ///
    /// Guards that were [split](Self::split) are one again. Permits of different acquisitions keep their leases: the
    /// guard is valid while all of them are, [`remaining`](Self::remaining) is that of the lease that ends first, and
    /// [`lost`](Self::lost) resolves when the first of them is lost. The others stay held until the guard is dropped or
    /// released.
    ///
    /// # Errors
    /// `other` is of another name or another client. The error has the guard, which still holds its permits, and is an
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) error.
    pub fn merge(&mut self, other: Self) -> Result<(), MergeError<Self>> {
        if !self.one.is_beside(&other.one) {
            let name = other.name().to_owned();
            return Err(MergeError::new(other, &name));
        }
        for share in other.into_shares() {
            if let Err(share) = self.one.merge(share)
                && let Some(share) = self.others.iter_mut().try_fold(share, |share, own| own.merge(share).err())
            {
                self.others.push(share);
            }
        }
        Ok(())
    }

    /// The name of the semaphore.
    pub fn name(&self) -> &str {
        &self.one.hold.keys.name
    }

    /// Whether the permits are still valid by this client's own count of the lease. Sends no command.
    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// The rest of the lease by this client's own count: see [`LockGuard::remaining`](crate::LockGuard::remaining).
    /// Sends no command.
    pub fn remaining(&self) -> Duration {
        let remaining = |share: &Share| share.hold.remaining(share.context().now());
        self.others.iter().map(remaining).fold(remaining(&self.one), Duration::min)
    }

    /// Prolongs a [fixed lease](crate::Acquire::expires_after): see [`LockGuard::extend`](crate::LockGuard::extend).
    /// Sends one command for each acquisition whose permits the guard has. After an error, the leases of the others may
    /// have been prolonged.
    ///
    /// # Errors
    /// Those of [`LockGuard::extend`](crate::LockGuard::extend).
    ///
    /// # Cancel safety
    /// That of [`LockGuard::extend`](crate::LockGuard::extend).
    pub async fn extend(&self, lease: Duration) -> Result<()> {
        if self.others.is_empty() {
            return extend(&self.one, lease).await;
        }
        join_all(self.shares().map(|share| extend(share, lease))).await.into_iter().collect()
    }

    /// Resolves when the permits are lost, with the reason: see [`LockGuard::lost`](crate::LockGuard::lost).
    ///
    /// # Cancel safety
    /// The future may be dropped and `lost` called again. No loss is missed.
    pub async fn lost(&self) -> Loss {
        self.first_loss().await.loss()
    }

    pub(super) async fn first_loss(&self) -> NamedLoss {
        if self.others.is_empty() {
            return lost(&self.one).await;
        }
        let mut losses: FuturesUnordered<_> = self.shares().map(|share| lost(share)).collect();
        match losses.next().await {
            Some(loss) => loss,
            None => pending().await,
        }
    }

    pub(super) fn known_loss(&self) -> Option<NamedLoss> {
        self.shares().find_map(|share| loss(share))
    }

    pub(super) fn beside(&self) -> Self {
        Self { one: self.one.beside(), others: self.others.iter().map(Share::beside).collect() }
    }

    /// A signal of the loss, for tasks and threads that do not have the guard. It outlives the guard.
    pub fn lost_signal(&self) -> LossSignal {
        LossSignal::of_several(self.one.hold.keys.name.clone(), self.shares().map(|share| &***share))
    }

    /// Runs `work` and stops it when the permits are lost: see [`LockGuard::protect`](crate::LockGuard::protect).
    ///
    /// # Errors
    /// Those of [`LockGuard::protect`](crate::LockGuard::protect).
    ///
    /// # Cancel safety
    /// Dropping the future drops `work`. The guard keeps its permits.
    pub async fn protect<F: Future>(&self, work: F) -> Result<F::Output> {
        protect("protect", || self.known_loss(), self.first_loss(), work).await
    }

    /// Leaves the permits in Redis until their lease ends: see [`LockGuard::keep`](crate::LockGuard::keep). Sends no
    /// command.
    ///
    /// # Errors
    /// Those of [`LockGuard::keep`](crate::LockGuard::keep). Of a guard that was [merged](Self::merge), the permits of
    /// other acquisitions may have been kept.
    pub fn keep(self) -> Result<()> {
        self.shares().try_for_each(|share| share.can_be_kept())?;
        self.into_shares().map(Share::keep).fold(Ok(()), Result::and)
    }

    /// Gives the permits back and waits until the server has confirmed it. If the guard was
    /// [split](Self::split), the permits of the other guards stay held.
    ///
    /// # Errors
    /// Those of [`LockGuard::release`](crate::LockGuard::release). If the guard was split, the server may count its
    /// permits as used until the lease of the other guards ends.
    ///
    /// # Cancel safety
    /// If the future is dropped, the release continues in the background.
    pub async fn release(self) -> Result<()> {
        if self.others.is_empty() {
            return release(self.one).await;
        }
        // On the heap, as it is rare.
        Box::pin(release_all(self.into_shares())).await
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Permit");
        shown.field("name", &self.name()).field("count", &self.count()).field("remaining", &self.remaining()).finish()
    }
}
