//! The traits that guards implement, for generic code.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use super::{
    LockGuard, LossSignal, NamedLoss, Permit, ReadGuard, RedissonFencedGuard, RedissonGuard, RedissonPermitGuard,
    UpgradableGuard, WriteGuard, loss, lost,
};
use crate::engine::lease::Loss;
use crate::error::Result;

mod sealed {
    use super::{Future, NamedLoss};
    use crate::acquire::builder::obtain::Obtain;

    /// What only the library can do with any guard.
    pub trait Sealed: Obtain {
        /// Another guard of the same hold, which the caller does not know of.
        fn share(&self) -> Self;

        /// The loss of the hold, if it is lost by now.
        fn loss(&self) -> Option<NamedLoss>;

        /// Resolves when a loss is signalled.
        fn first_lost(&self) -> impl Future<Output = NamedLoss> + Send;
    }
}

pub(crate) use sealed::Sealed;

/// The methods that all guards share, for code that takes any of them: [`LockGuard`], [`ReadGuard`],
/// [`UpgradableGuard`], [`WriteGuard`], [`Permit`], [`RedissonGuard`], [`RedissonFencedGuard`],
/// [`RedissonPermitGuard`] and [`MultiGuard`](crate::MultiGuard). The methods are documented at [`LockGuard`]. Other
/// crates cannot implement this trait.
///
/// All returned futures are `Send`. That of [`protect`](Self::protect) requires `work` to be `Send`.
///
/// # Examples
/// ```no_run
/// use bowline::{Held, Result};
///
/// async fn import<G: Held>(guard: G) -> Result<()> {
///     println!("importing under {:?}", guard.name());
///     guard.protect(async { /* stops if the lease is lost */ }).await?;
///     guard.release().await
/// }
///
/// # async fn example(client: bowline::Client) -> Result<()> {
/// import(client.lock("import").lock().await?).await?;
/// import(client.semaphore("imports", 4).acquire().await?).await
/// # }
/// ```
#[must_use = "the hold is released when the guard is dropped"]
pub trait Held: sealed::Sealed + fmt::Debug + Send + Sync + Sized + 'static {
    /// What is known of a loss: the [`Loss`], or for a guard of several holds also [which of them](NamedLoss) was lost.
    type Lost: Into<Loss> + fmt::Display + fmt::Debug + Clone + Send + Sync + 'static;

    /// See [`LockGuard::name`]. A guard of several holds returns all their names, separated by a comma and a space.
    fn name(&self) -> &str;

    /// See [`LockGuard::is_valid`].
    fn is_valid(&self) -> bool;

    /// See [`LockGuard::remaining`].
    fn remaining(&self) -> Duration;

    /// See [`LockGuard::lost`].
    ///
    /// # Cancel safety
    /// That of [`LockGuard::lost`].
    fn lost(&self) -> impl Future<Output = Self::Lost> + Send;

    /// See [`LockGuard::lost_signal`].
    fn lost_signal(&self) -> LossSignal;

    /// See [`LockGuard::protect`].
    ///
    /// # Errors
    /// Those of [`LockGuard::protect`].
    ///
    /// # Cancel safety
    /// That of [`LockGuard::protect`].
    fn protect<F: Future + Send>(&self, work: F) -> impl Future<Output = Result<F::Output>> + Send;

    /// See [`LockGuard::extend`].
    ///
    /// # Errors
    /// Those of [`LockGuard::extend`].
    ///
    /// # Cancel safety
    /// That of [`LockGuard::extend`].
    fn extend(&self, lease: Duration) -> impl Future<Output = Result<()>> + Send;

    /// See [`LockGuard::keep`].
    ///
    /// # Errors
    /// Those of [`LockGuard::keep`].
    fn keep(self) -> Result<()>;

    /// See [`LockGuard::release`].
    ///
    /// # Errors
    /// Those of [`LockGuard::release`].
    ///
    /// # Cancel safety
    /// That of [`LockGuard::release`].
    fn release(self) -> impl Future<Output = Result<()>> + Send;
}

/// Implements [`Held`] by the guard's own methods.
macro_rules! impl_held {
    ($guard:ident, $lost:ty) => {
        // These paths call the guard's own methods, which take precedence over those of the trait.
        impl Held for $guard {
            type Lost = $lost;

            fn name(&self) -> &str {
                $guard::name(self)
            }

            fn is_valid(&self) -> bool {
                $guard::is_valid(self)
            }

            fn remaining(&self) -> Duration {
                $guard::remaining(self)
            }

            fn lost(&self) -> impl Future<Output = $lost> + Send {
                $guard::lost(self)
            }

            fn lost_signal(&self) -> LossSignal {
                $guard::lost_signal(self)
            }

            fn protect<F: Future + Send>(&self, work: F) -> impl Future<Output = Result<F::Output>> + Send {
                $guard::protect(self, work)
            }

            fn extend(&self, lease: Duration) -> impl Future<Output = Result<()>> + Send {
                $guard::extend(self, lease)
            }

            fn keep(self) -> Result<()> {
                $guard::keep(self)
            }

            fn release(self) -> impl Future<Output = Result<()>> + Send {
                $guard::release(self)
            }
        }
    };
}

pub(crate) use impl_held;

/// Implements the traits of a guard of one hold.
macro_rules! guards_of_one_hold {
    ($($guard:ident),+) => {$(
        impl sealed::Sealed for $guard {
            fn share(&self) -> Self {
                Self { owned: self.owned.beside() }
            }

            fn loss(&self) -> Option<NamedLoss> {
                loss(&self.owned)
            }

            fn first_lost(&self) -> impl Future<Output = NamedLoss> + Send {
                lost(&self.owned)
            }
        }

        impl_held!($guard, Loss);
    )+};
}

guards_of_one_hold!(
    LockGuard,
    ReadGuard,
    UpgradableGuard,
    WriteGuard,
    RedissonGuard,
    RedissonFencedGuard,
    RedissonPermitGuard
);

impl sealed::Sealed for Permit {
    fn share(&self) -> Self {
        self.beside()
    }

    fn loss(&self) -> Option<NamedLoss> {
        self.known_loss()
    }

    fn first_lost(&self) -> impl Future<Output = NamedLoss> + Send {
        self.first_loss()
    }
}

impl_held!(Permit, Loss);

/// The guards that a [`Holder`](crate::Holder) can acquire again while it holds them: all but [`Permit`] and
/// [`RedissonPermitGuard`]. Other crates
/// cannot implement this trait.
pub trait Reentrant: Held {}

impl Reentrant for LockGuard {}
impl Reentrant for ReadGuard {}
impl Reentrant for UpgradableGuard {}
impl Reentrant for WriteGuard {}
impl Reentrant for RedissonGuard {}
impl Reentrant for RedissonFencedGuard {}
