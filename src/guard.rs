//! Guards: what proves and ends a hold.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::engine::lease::Loss;
use crate::error::Result;
use crate::extend::extend;
use crate::mutant::{self, Mutant};
use crate::owned::{Owned, lost_error};
use crate::protocol::token::Token;

mod held;
mod signal;

pub(crate) use held::Acquired;
pub use held::{Held, Reentrant};
pub use signal::LossSignal;

/// A held lock: see [`Lock`](crate::Lock). Released by [`release`](Self::release), or in the background when dropped.
///
/// # Guarantees
/// While [`is_valid`](Self::is_valid) says `true`, no other guard of the same name is valid, in any process that uses
/// the same server and prefix; see the exceptions below. A loss is signalled by [`lost`](Self::lost) at the latest when
/// the lease, counted from before the last renewal was sent, is over.
///
/// # Not guaranteed
/// A lock on Redis is a lease, not a mutex: code that checked a moment ago may be paused past the end of its lease.
/// Exclusion may also fail for holds granted before a `FLUSHALL`, a failover that lost them, an eviction, or a forward step of
/// the server's clock, and after a suspended machine resumes. For these there is the [`token`](Self::token): send it with
/// every write, and let the resource refuse smaller ones.
///
/// # Dropping
/// The drop hands the release to the client's background task, which tries until the server answers or the lease is
/// over. A runtime that is shut down releases what is held by then, as
/// [`shutdown_timeout`](crate::ConfigBuilder::shutdown_timeout) allows; a guard that outlives it is lost. To wait for the
/// release in any case, use [`run`](crate::Acquire::run).
#[must_use = "the lock is released when the guard is dropped"]
pub struct LockGuard {
    owned: Arc<Owned>,
}

/// A read-write lock held for reading: see [`RwLock`](crate::RwLock). No writer holds it as long as
/// [`is_valid`](Self::is_valid) says `true`, with the exceptions of [`LockGuard`]. Dropping it releases in the background.
#[must_use = "the lock is released when the guard is dropped"]
pub struct ReadGuard {
    pub(crate) owned: Arc<Owned>,
}

/// A read-write lock held for writing: see [`RwLock`](crate::RwLock). Nobody else holds it as long as
/// [`is_valid`](Self::is_valid) says `true`, with the exceptions of [`LockGuard`]. Dropping it releases in the background.
#[must_use = "the lock is released when the guard is dropped"]
pub struct WriteGuard {
    pub(crate) owned: Arc<Owned>,
}

/// Permits of a semaphore: see [`Semaphore`](crate::Semaphore). All holders together have no more than its limit as long
/// as [`is_valid`](Self::is_valid) says `true`, with the exceptions of [`LockGuard`]. Dropping it gives the permits back
/// in the background.
///
/// There is no fencing token: what several hold at a time, none of them can be fenced out of by an order.
#[must_use = "the permits are given back when the guard is dropped"]
pub struct Permit {
    owned: Arc<Owned>,
}

impl LockGuard {
    /// The fencing token of this hold.
    pub fn token(&self) -> Token {
        self.owned.hold.token
    }
}

impl ReadGuard {
    /// No smaller than those of all writers before, and smaller than those of all that come after. Storage that has seen a
    /// larger one knows that this reader is late.
    pub fn token(&self) -> Token {
        self.owned.hold.token
    }
}

impl WriteGuard {
    /// The fencing token of this hold.
    pub fn token(&self) -> Token {
        self.owned.hold.token
    }
}

impl Permit {
    /// How many permits this is.
    pub fn count(&self) -> u32 {
        self.owned.hold.amount
    }
}

/// What all guards can do.
macro_rules! guards {
    ($($guard:ident),+) => {$(
        impl $guard {
            pub(crate) fn new(owned: Arc<Owned>) -> Self {
                Self { owned }
            }

            /// The name of what is held.
            pub fn name(&self) -> &str {
                &self.owned.hold.keys.name
            }

            /// Whether the holder may still act. Costs no command: it is the client's own count of the lease.
            pub fn is_valid(&self) -> bool {
                !self.remaining().is_zero()
            }

            /// What is left of the lease by the client's own, careful count; zero once it is lost. The watchdog's
            /// renewals make it longer.
            pub fn remaining(&self) -> Duration {
                self.owned.hold.remaining(self.owned.context.now())
            }

            /// Prolongs a [fixed lease](crate::Acquire::expires_after): the hold lasts for `lease` from now, or longer if it
            /// would have anyway. One command; returns when the server has confirmed it. With a [`Holder`](crate::Holder),
            /// the hold of all its guards is prolonged.
            ///
            /// # Units
            /// 100 ms ([`MIN_LEASE`](crate::MIN_LEASE)) to 24 h ([`MAX_LEASE`](crate::MAX_LEASE)), in whole milliseconds,
            /// counted from before the request that was answered was sent.
            ///
            /// # Errors
            /// - [`Lost`](crate::ErrorKind::Lost): the hold ended before. Others may have been let in.
            /// - [`InvalidInput`](crate::ErrorKind::InvalidInput): a lease out of range, or the hold is renewed by the
            ///   watchdog. Nothing was sent.
            /// - [`Unavailable`](crate::ErrorKind::Unavailable), [`Refused`](crate::ErrorKind::Refused) and other answers of
            ///   the server: the guard keeps the lease that it had.
            ///
            /// # Cancel safety
            /// Dropping the future keeps the guard and the lease that it had. The hold may last longer in Redis, until the
            /// guard is released or expires.
            pub async fn extend(&self, lease: Duration) -> Result<()> {
                extend(&self.owned, lease).await
            }

            /// Resolves when the holder must stop, and says why.
            ///
            /// # Cancel safety
            /// May be dropped and called again; a loss is not missed.
            pub async fn lost(&self) -> Loss {
                self.owned.hold.lost().await
            }

            /// The same, for tasks and threads that do not have the guard, and for when it is gone.
            pub fn lost_signal(&self) -> LossSignal {
                LossSignal::new(&self.owned)
            }

            /// Runs `work`, and stops it when the lease is lost.
            ///
            /// Between its awaits `work` is not stopped: it should await often, and what it writes should be fenced by a
            /// token where there is one.
            ///
            /// # Errors
            /// [`Lost`](crate::ErrorKind::Lost), with the [`Loss`] as its source, if the lease was lost before `work`
            /// was done; `work` is dropped then.
            ///
            /// To release as well when the work is done, see [`run`](crate::Acquire::run).
            ///
            /// # Cancel safety
            /// Dropping the future drops `work` and keeps the guard.
            pub async fn protect<F: Future>(&self, work: F) -> Result<F::Output> {
                protect(&self.owned, "protect", work).await
            }

            /// Releases and waits until the server has confirmed it. With a [`Holder`](crate::Holder), only the last
            /// guard does; the others just go. What goes to the next in a [line](crate::Acquire::non_fair) is not
            /// waited for.
            ///
            /// # Errors
            /// - [`Lost`](crate::ErrorKind::Lost): the lease was over before; others may have been let in meanwhile.
            /// - [`Unavailable`](crate::ErrorKind::Unavailable), [`Refused`](crate::ErrorKind::Refused) and other
            ///   answers of the server: the hold ends with its lease at the latest.
            ///
            /// # Cancel safety
            /// Dropping the future finishes the release in the background.
            pub async fn release(self) -> Result<()> {
                release(self.owned).await
            }
        }

        impl fmt::Debug for $guard {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut shown = f.debug_struct(stringify!($guard));
                shown.field("name", &self.name());
                if self.owned.hold.token != Token::NONE {
                    shown.field("token", &self.owned.hold.token);
                }
                shown.field("remaining", &self.remaining()).finish()
            }
        }
    )+};
}

guards!(LockGuard, ReadGuard, WriteGuard, Permit);

pub(crate) async fn protect<F: Future>(owned: &Owned, operation: &'static str, work: F) -> Result<F::Output> {
    let mut work = pin!(work);
    let mut lost = pin!(owned.hold.lost());
    poll_fn(|context| {
        // The clock is asked too: the process may have slept through the deadline.
        let signalled = match lost.as_mut().poll(context) {
            Poll::Ready(loss) => Some(loss),
            Poll::Pending if mutant::on(Mutant::ProtectWaitsForSignal) => None,
            Poll::Pending => owned.hold.loss(owned.context.now()),
        };
        match signalled {
            Some(loss) => Poll::Ready(Err(lost_error(&owned.hold, operation, loss))),
            None => work.as_mut().poll(context).map(Ok),
        }
    })
    .await
}

pub(crate) async fn release(owned: Arc<Owned>) -> Result<()> {
    let hold = owned.hold.clone();
    let loss = hold.loss(owned.context.now());
    // Not `try_unwrap`: of guards that go at the same time, exactly one must find itself the last.
    match Arc::into_inner(owned) {
        Some(owned) => owned.release().await,
        None => loss.map_or(Ok(()), |loss| Err(lost_error(&hold, "release", loss))),
    }
}
