//! The traits that guards implement, for generic code.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use super::{LockGuard, LossSignal, Permit, ReadGuard, WriteGuard};
use crate::engine::lease::Loss;
use crate::error::Result;

mod sealed {
    use std::sync::Arc;

    use crate::owned::Owned;

    /// What a guard holds. Other crates cannot look inside.
    #[derive(Debug)]
    pub struct Acquired(pub(crate) Arc<Owned>);

    pub trait Sealed: Sized {
        fn of(acquired: Acquired) -> Self;
        fn acquired(&self) -> Acquired;
    }
}

pub(crate) use sealed::Acquired;

/// The methods that all guards share, for code that takes any of them: [`LockGuard`], [`ReadGuard`], [`WriteGuard`] and
/// [`Permit`]. The methods are documented at [`LockGuard`]. Other crates cannot implement this trait.
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
    /// See [`LockGuard::name`].
    fn name(&self) -> &str;

    /// See [`LockGuard::is_valid`].
    fn is_valid(&self) -> bool;

    /// See [`LockGuard::remaining`].
    fn remaining(&self) -> Duration;

    /// See [`LockGuard::lost`].
    ///
    /// # Cancel safety
    /// That of [`LockGuard::lost`].
    fn lost(&self) -> impl Future<Output = Loss> + Send;

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

    /// See [`LockGuard::release`].
    ///
    /// # Errors
    /// Those of [`LockGuard::release`].
    ///
    /// # Cancel safety
    /// That of [`LockGuard::release`].
    fn release(self) -> impl Future<Output = Result<()>> + Send;
}

macro_rules! held {
    ($($guard:ident),+) => {$(
        impl sealed::Sealed for $guard {
            fn of(acquired: Acquired) -> Self {
                Self::new(acquired.0)
            }

            fn acquired(&self) -> Acquired {
                Acquired(self.owned.clone())
            }
        }

        // These paths call the guards' own methods, which take precedence over those of the trait.
        impl Held for $guard {
            fn name(&self) -> &str {
                $guard::name(self)
            }

            fn is_valid(&self) -> bool {
                $guard::is_valid(self)
            }

            fn remaining(&self) -> Duration {
                $guard::remaining(self)
            }

            fn lost(&self) -> impl Future<Output = Loss> + Send {
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

            fn release(self) -> impl Future<Output = Result<()>> + Send {
                $guard::release(self)
            }
        }
    )+};
}

held!(LockGuard, ReadGuard, WriteGuard, Permit);

/// The guards that a [`Holder`](crate::Holder) can acquire again while it holds them: all but [`Permit`]. Other crates cannot
/// implement this trait.
pub trait Reentrant: Held {}

impl Reentrant for LockGuard {}
impl Reentrant for ReadGuard {}
impl Reentrant for WriteGuard {}
