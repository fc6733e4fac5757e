//! The guard of several holds.

use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use futures::stream::{FuturesUnordered, StreamExt};

use super::acquire::acquire_all;
use super::holds::Holds;
use crate::acquire::builder::choices::Options;
use crate::acquire::builder::obtain::Obtain;
use crate::error::Result;
use crate::hold::extend::extend;
use crate::hold::guard::asked::{asked, is_asked};
use crate::hold::guard::{Held, LossSignal, NamedLoss, Reentrant, Sealed, Share, impl_held, loss, lost, protect};
use crate::protocol::token::Token;

/// Several holds that were acquired together and end together, returned by acquisitions of a
/// [`MultiLock`](crate::MultiLock).
///
/// A drop releases all of them in the background, the last acquired first. [`release`](Self::release) waits for the
/// server.
///
/// # Guarantees
/// - While [`is_valid`](Self::is_valid) returns `true`, every hold is valid, as [`LockGuard`](crate::LockGuard) says.
/// - [`lost`](Self::lost) resolves when the first of them is lost. The others stay held until the guard is dropped or
///   released.
///
/// # Not guaranteed
/// The holds have leases of their own, and one of them can be lost alone. The [tokens](Self::token) fence each of them:
/// send with each write the token of the name that the write is about.
#[must_use = "the holds are released when the guard is dropped"]
pub struct MultiGuard {
    holds: Holds,
    /// All names, separated by a comma and a space.
    label: Arc<str>,
}

impl MultiGuard {
    fn new(holds: Holds) -> Self {
        let label = holds.iter().map(|owned| &*owned.hold.keys.name).collect::<Vec<_>>().join(", ");
        Self { holds, label: label.into() }
    }

    /// All names, separated by a comma and a space.
    pub fn name(&self) -> &str {
        &self.label
    }

    /// The names, in the order in which they were acquired: locks, read-write locks, semaphores, names of a
    /// [`RedLock`](crate::RedLock), and each kind by name and prefix. A primitive that was named twice appears once.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.holds.iter().map(|owned| &*owned.hold.keys.name)
    }

    /// The fencing token of the hold of `name`. `None` if nothing of that name was acquired, if the hold has no token
    /// (permits have none), or if several holds with tokens have that name, such as a lock and a read-write lock: see
    /// [`tokens`](Self::tokens).
    pub fn token(&self, name: &str) -> Option<Token> {
        let mut named = self.tokens().filter(|(other, _)| *other == name);
        let (_, token) = named.next()?;
        named.next().is_none().then_some(token)
    }

    /// The fencing tokens with their names, in the order of [`names`](Self::names). Permits have none.
    pub fn tokens(&self) -> impl Iterator<Item = (&str, Token)> {
        let token = |owned: &Share| Some(owned.hold.token()).filter(|token| *token != Token::NONE);
        self.holds.iter().filter_map(move |owned| Some((&*owned.hold.keys.name, token(owned)?)))
    }

    /// Whether every hold is still valid by this client's own count of the leases. Sends no command.
    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// The rest of the lease that ends first, by this client's own count. Zero after a loss. Sends no command.
    pub fn remaining(&self) -> Duration {
        let remaining = |owned: &Share| owned.hold.remaining(owned.context().now());
        self.holds.iter().map(remaining).min().unwrap_or_default()
    }

    /// Prolongs the [fixed leases](crate::Acquire::expires_after), as [`LockGuard::extend`](crate::LockGuard::extend)
    /// does: all of them last for at least `lease` from now. Sends one command for each hold, all at the same time.
    ///
    /// # Errors
    /// Those of [`LockGuard::extend`](crate::LockGuard::extend), with the name that failed. The other leases may have
    /// been prolonged.
    ///
    /// # Cancel safety
    /// That of [`LockGuard::extend`](crate::LockGuard::extend), for each hold.
    pub async fn extend(&self, lease: Duration) -> Result<()> {
        join_all(self.holds.iter().map(|owned| extend(owned, lease))).await.into_iter().collect()
    }

    /// Resolves when the first of the holds is lost, with its name and the reason. The holder must stop then.
    ///
    /// # Cancel safety
    /// The future may be dropped and `lost` called again. No loss is missed.
    pub async fn lost(&self) -> NamedLoss {
        let mut losses: FuturesUnordered<_> = self.holds.iter().map(|owned| lost(owned)).collect();
        match losses.next().await {
            Some(loss) => loss,
            None => pending().await,
        }
    }

    /// Resolves when somebody has asked the holder to release one of the names: see
    /// [`LockGuard::asked_to_release`](crate::LockGuard::asked_to_release).
    ///
    /// # Cancel safety
    /// The future may be dropped and `asked_to_release` called again.
    pub async fn asked_to_release(&self) {
        asked(self.holds.iter()).await;
    }

    /// Whether somebody has asked the holder to release one of the names. Sends no command.
    pub fn is_asked_to_release(&self) -> bool {
        is_asked(self.holds.iter())
    }

    /// A signal of the first loss, for tasks and threads that do not have the guard. It outlives the guard.
    pub fn lost_signal(&self) -> LossSignal {
        LossSignal::of_several(self.label.clone(), self.holds.iter().map(|owned| &***owned))
    }

    /// Runs `work` and stops it when one of the holds is lost, as [`LockGuard::protect`](crate::LockGuard::protect)
    /// does.
    ///
    /// # Errors
    /// [`Lost`](crate::ErrorKind::Lost), with the name of the hold that was lost before `work` was done, and with the
    /// [`Loss`](crate::Loss) as its source. `work` is dropped.
    ///
    /// # Cancel safety
    /// Dropping the future drops `work`. The guard keeps its holds.
    pub async fn protect<F: Future>(&self, work: F) -> Result<F::Output> {
        protect("protect", || self.loss(), self.lost(), work).await
    }

    /// Leaves all holds in Redis, where each stays until its lease ends, as [`LockGuard::keep`](crate::LockGuard::keep)
    /// says. Sends no command.
    ///
    /// # Errors
    /// Those of [`LockGuard::keep`](crate::LockGuard::keep), with the name that failed. All holds are released then. If
    /// one is lost at this moment, the others are left nevertheless.
    pub fn keep(self) -> Result<()> {
        self.holds.keep()
    }

    /// Releases all holds, and waits until the server has confirmed all of them. The releases begin in the reverse
    /// order of the acquisitions, and none waits for another. Holds that are shared with other guards of one
    /// [`Holder`](crate::Holder) stay.
    ///
    /// # Errors
    /// Those of [`LockGuard::release`](crate::LockGuard::release), with the name that failed:
    /// [`Lost`](crate::ErrorKind::Lost) if one of the holds was lost. The others are released in any case.
    ///
    /// # Cancel safety
    /// If the future is dropped, the releases continue in the background.
    pub async fn release(self) -> Result<()> {
        self.holds.release().await
    }
}

impl fmt::Debug for MultiGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("MultiGuard");
        shown.field("names", &self.names().collect::<Vec<_>>());
        shown.field("tokens", &self.tokens().collect::<Vec<_>>());
        shown.field("remaining", &self.remaining()).finish()
    }
}

impl Obtain for MultiGuard {
    async fn acquire<T>(
        options: Options,
        wait: bool,
        finish: impl FnOnce(Option<Self>) -> Result<T> + Send,
    ) -> Result<T> {
        finish(acquire_all(&options, wait).await?.map(Self::new))
    }
}

impl Sealed for MultiGuard {
    fn share(&self) -> Self {
        Self { holds: self.holds.beside(), label: self.label.clone() }
    }

    fn loss(&self) -> Option<NamedLoss> {
        self.holds.iter().find_map(|owned| loss(owned))
    }

    fn first_lost(&self) -> impl Future<Output = NamedLoss> + Send {
        self.lost()
    }
}

impl_held!(MultiGuard, NamedLoss);

impl Reentrant for MultiGuard {}

#[cfg(test)]
mod tests;
