//! What all guards have in common, for generic code.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use super::{LockGuard, LossSignal, Permit, ReadGuard, WriteGuard, sealed};
use crate::engine::lease::Loss;
use crate::error::Result;

/// The guards of this crate: [`LockGuard`], [`ReadGuard`], [`WriteGuard`] and [`Permit`], for code that takes any of them. The
/// methods are those of the guards, and are documented there. The trait is sealed: other crates cannot implement it.
///
/// All futures can be sent to other threads; that of [`protect`](Self::protect) for work that can be sent.
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
#[must_use = "what is held is released when the guard is dropped"]
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
    /// As there.
    fn lost(&self) -> impl Future<Output = Loss> + Send;

    /// See [`LockGuard::lost_signal`].
    fn lost_signal(&self) -> LossSignal;

    /// See [`LockGuard::protect`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Cancel safety
    /// As there.
    fn protect<F: Future + Send>(&self, work: F) -> impl Future<Output = Result<F::Output>> + Send;

    /// See [`LockGuard::extend`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Cancel safety
    /// As there.
    fn extend(&self, lease: Duration) -> impl Future<Output = Result<()>> + Send;

    /// See [`LockGuard::release`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Cancel safety
    /// As there.
    fn release(self) -> impl Future<Output = Result<()>> + Send;
}

macro_rules! held {
    ($($guard:ident),+) => {$(
        impl sealed::Sealed for $guard {
            fn of(acquired: sealed::Acquired) -> Self {
                Self::new(acquired.0)
            }
        }

        // The paths name the guards' own methods, which come before those of a trait.
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
