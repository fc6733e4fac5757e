//! Guards: what proves and ends a hold.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::lease::Loss;
use crate::error::Result;
use crate::hold::extend::extend;
use crate::hold::give_back::give_back;
use crate::hold::owner::release::With;
use crate::hold::owner::{HoldOwner, check_not_lost};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::once::RunEnd;
use crate::protocol::token::Token;

pub(crate) mod asked;
mod count;
mod held;
mod loss;
mod merge;
mod permit;
mod protect;
mod redisson;
mod several;
mod share;
mod signal;

pub use held::{Held, Reentrant};
pub(crate) use held::{Sealed, impl_held};
pub use loss::NamedLoss;
pub use merge::MergeError;
pub use permit::Permit;
pub(crate) use protect::protect;
pub use redisson::{RedissonFencedGuard, RedissonGuard, RedissonPermitGuard};
pub(crate) use several::release_all;
pub(crate) use share::Share;
pub use signal::LossSignal;

/// A held lock, returned by acquisitions of a [`Lock`](crate::Lock). [`release`](Self::release) ends the hold and waits
/// for the server. A drop releases in the background.
///
/// # Guarantees
/// - While [`is_valid`](Self::is_valid) returns `true`, no other guard of the same name is valid in any process that
///   uses the same server and prefix, with the exceptions below.
/// - [`lost`](Self::lost) resolves at the latest when the lease ends, counted from the moment before its last renewal
///   was sent.
///
/// # Not guaranteed
/// A lock on Redis is a lease, not a mutex. A program can be paused between a check and the next step, past the end of
/// its lease.
///
/// Two guards can be valid at the same time after the server lost a hold: by a `FLUSHALL`, an eviction, or a failover
/// to a replica that had not received it. The same can happen after a forward step of the server's clock, and on a
/// machine whose clock stood still: see
/// [docs/quorum.md](https://docs.rs/crate/bowline/latest/source/docs/quorum.md#clocks).
///
/// The [`token`](Self::token) covers all of these cases: send it with every write, and let the resource reject writes
/// with a smaller token than the largest it has seen.
///
/// # Dropping
/// The drop hands the release to the client's background task, which retries until the server answers or the lease
/// ends. If the runtime is shut down first, the [`shutdown_timeout`](crate::ConfigBuilder::shutdown_timeout) limits the
/// release. A guard that outlives the runtime is lost. Use [`run`](crate::Acquire::run) to await the release on every
/// path.
#[must_use = "the lock is released when the guard is dropped"]
pub struct LockGuard {
    pub(crate) owned: Share,
}

/// A read-write lock held for reading, returned by acquisitions of a [`RwLock`](crate::RwLock).
///
/// While [`is_valid`](Self::is_valid) returns `true`, no [`WriteGuard`] of the same name is valid, with the exceptions
/// of [`LockGuard`]. A drop releases in the background.
#[must_use = "the lock is released when the guard is dropped"]
pub struct ReadGuard {
    pub(crate) owned: Share,
}

/// A read-write lock held for writing, returned by acquisitions of a [`RwLock`](crate::RwLock).
///
/// While [`is_valid`](Self::is_valid) returns `true`, no other guard of the same name is valid, with the exceptions of
/// [`LockGuard`]. A drop releases in the background.
#[must_use = "the lock is released when the guard is dropped"]
pub struct WriteGuard {
    pub(crate) owned: Share,
}

/// A read-write lock held for reading, by the one reader that may [`upgrade`](Self::upgrade) to the writer. Returned by
/// acquisitions of a [`RwLock`](crate::RwLock).
///
/// While [`is_valid`](Self::is_valid) returns `true`, no [`WriteGuard`] of the same name is valid, and no other
/// upgradable one, with the exceptions of [`LockGuard`]. A drop releases in the background.
#[must_use = "the lock is released when the guard is dropped"]
pub struct UpgradableGuard {
    pub(crate) owned: Share,
}

macro_rules! token {
    ($($guard:ident),+: $doc:literal) => {$(
        impl $guard {
            #[doc = $doc]
            pub fn token(&self) -> Token {
                self.owned.hold.token()
            }
        }
    )+};
}

token!(LockGuard, WriteGuard: "The fencing token of this hold. Re-entry and renewal keep it.");
token!(
    ReadGuard, UpgradableGuard:
    "The fencing token of this reader: at least the token of every writer before it, and smaller than the token of\n\
     every writer after it. Storage that has seen a larger token knows that this reader is late."
);

impl LockGuard {
    /// The lease of the hold.
    pub(crate) fn lease(&self) -> Duration {
        self.owned.hold.lease
    }

    /// The attempt that was granted.
    pub(crate) fn attempt(&self) -> AttemptId {
        self.owned.hold.id
    }

    /// Ends the run whose hold this is. The guard was never shared.
    pub(crate) async fn end_run(self, end: RunEnd) -> Result<()> {
        release_with(self.owned.into_owned(), &mut With::Outcome(end)).await
    }
}

/// What all guards can do.
macro_rules! guards {
    ($($guard:ident),+) => {$(
        impl $guard {
            pub(crate) fn new(owned: Arc<HoldOwner>) -> Self {
                Self { owned: Share::new(owned) }
            }

            /// The name of the primitive.
            pub fn name(&self) -> &str {
                &self.owned.hold.keys.name
            }

            /// Whether the hold is still valid by this client's own count of the lease. Sends no command.
            pub fn is_valid(&self) -> bool {
                !self.remaining().is_zero()
            }

            /// The rest of the lease by this client's own count, which ends before the server's for safety. Renewals by
            /// the watchdog prolong it. Zero after a loss. Sends no command.
            pub fn remaining(&self) -> Duration {
                self.owned.hold.remaining(self.owned.context().now())
            }

            /// Prolongs a [fixed lease](crate::Acquire::expires_after), so that the hold lasts for at least `lease`
            /// from now. A lease that already lasts longer is not shortened.
            ///
            /// Sends one command and returns when the server has confirmed it. All guards of one
            /// [`Holder`](crate::Holder) that share the hold are prolonged.
            ///
            /// # Units
            /// 100 ms ([`MIN_LEASE`](crate::MIN_LEASE)) to 24 h ([`MAX_LEASE`](crate::MAX_LEASE)), in whole
            /// milliseconds, counted from the moment before the answered request was sent.
            ///
            /// # Errors
            /// - [`Lost`](crate::ErrorKind::Lost): the hold ended before. Another holder may have been granted the
            ///   lock.
            /// - [`InvalidInput`](crate::ErrorKind::InvalidInput): the lease is out of range, or the watchdog renews
            ///   the hold. Nothing was sent.
            /// - [`Unacknowledged`](crate::ErrorKind::Unacknowledged): too few replicas have the longer lease in time.
            ///   The guard keeps its previous lease.
            /// - [`Unavailable`](crate::ErrorKind::Unavailable), [`Refused`](crate::ErrorKind::Refused) and other
            ///   errors of the server: the guard keeps its previous lease.
            ///
            /// # Cancel safety
            /// If the future is dropped, the guard keeps its previous lease. In Redis the hold may last longer, until
            /// the guard is released or expires.
            pub async fn extend(&self, lease: Duration) -> Result<()> {
                extend(&self.owned, lease).await
            }

            /// Resolves when the hold is lost, with the reason. The holder must stop then.
            ///
            /// # Cancel safety
            /// The future may be dropped and `lost` called again. No loss is missed.
            pub async fn lost(&self) -> Loss {
                self.owned.hold.lost().await
            }

            /// A signal of the loss, for tasks and threads that do not have the guard. It outlives the guard.
            pub fn lost_signal(&self) -> LossSignal {
                LossSignal::of_one(&self.owned)
            }

            /// Runs `work` and stops it when the hold is lost.
            ///
            /// `work` is stopped only where it awaits, so it should await often. Fence its writes with a token if there
            /// is one. Use [`run`](crate::Acquire::run) to also release when the work is done.
            ///
            /// # Errors
            /// [`Lost`](crate::ErrorKind::Lost), with the [`Loss`] as its source: the hold was lost before `work` was
            /// done. `work` is dropped.
            ///
            /// # Cancel safety
            /// Dropping the future drops `work`. The guard keeps its hold.
            pub async fn protect<F: Future>(&self, work: F) -> Result<F::Output> {
                protect("protect", || loss(&self.owned), lost(&self.owned), work).await
            }

            /// Leaves the hold in Redis until its lease ends, which takes [`remaining`](Self::remaining) at least. The
            /// client does not release the hold, not even when it is [closed](crate::Client::close). Sends no command.
            ///
            /// The hold is not renewed any more. Choose its time with
            /// [`expires_after`](crate::Acquire::expires_after) and [`extend`](Self::extend): a hold that the watchdog
            /// renewed lasts for two thirds to the whole of its lease. If several guards of one
            /// [`Holder`](crate::Holder) share the hold, the client renews it until the last of them is gone, and
            /// leaves it then. If it is closed before, it releases the hold. A downgrade or an upgrade does not change
            /// that.
            ///
            /// # Errors
            /// The guard is gone in any case. If there is an error, the hold is released.
            /// - [`Lost`](crate::ErrorKind::Lost): the hold ended before.
            /// - [`InvalidInput`](crate::ErrorKind::InvalidInput): the hold is that of a
            ///   [`RedLock`](crate::RedLock).
            pub fn keep(self) -> Result<()> {
                self.owned.keep()
            }

            /// Releases the hold and waits until the server has confirmed it.
            ///
            /// If several guards of one [`Holder`](crate::Holder) share the hold, only the last one releases it. The
            /// others return at once. A hold that is handed off within a [cohort](crate::Acquire::non_fair) is not
            /// released, and there is nothing to wait for.
            ///
            /// # Errors
            /// - [`Lost`](crate::ErrorKind::Lost): the lease had ended when the release was called, or a request that
            ///   began before that end found no hold. Another holder may have been granted the lock.
            /// - [`Unavailable`](crate::ErrorKind::Unavailable), [`Refused`](crate::ErrorKind::Refused) and other
            ///   errors of the server: the hold ends with its lease at the latest.
            ///
            /// # Cancel safety
            /// If the future is dropped, the release continues in the background.
            pub async fn release(self) -> Result<()> {
                release(self.owned).await
            }
        }

        impl fmt::Debug for $guard {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let (mut shown, token) = (f.debug_struct(stringify!($guard)), self.owned.hold.token());
                shown.field("name", &self.name());
                if token != Token::NONE {
                    shown.field("token", &token);
                }
                shown.field("remaining", &self.remaining()).finish()
            }
        }
    )+};
}

guards!(LockGuard, ReadGuard, UpgradableGuard, WriteGuard, RedissonGuard, RedissonFencedGuard, RedissonPermitGuard);

/// The loss of the hold, if it is lost by now.
pub(crate) fn loss(owned: &HoldOwner) -> Option<NamedLoss> {
    owned.hold.loss(owned.context().now()).map(|loss| NamedLoss::of(&owned.hold, loss))
}

/// Resolves when the loss of the hold is signalled.
pub(crate) async fn lost(owned: &HoldOwner) -> NamedLoss {
    NamedLoss::of(&owned.hold, owned.hold.lost().await)
}

pub(crate) async fn release(share: Share) -> Result<()> {
    match share.end_part() {
        // On the heap, as it is rare.
        Some(left) => Box::pin(give_back(share.into_owned(), left)).await,
        None => release_with(share.into_owned(), &mut With::Nothing).await,
    }
}

/// See [`HoldOwner::release_with`].
pub(crate) async fn release_with(owned: Arc<HoldOwner>, with: &mut With) -> Result<()> {
    let last = match Arc::try_unwrap(owned) {
        Ok(owned) => owned,
        Err(shared) => {
            let (context, hold) = (shared.context().clone(), shared.hold.clone());
            // `try_unwrap` alone may fail for all guards that are released at the same time. `into_inner` succeeds for
            // exactly one of them.
            match Arc::into_inner(shared) {
                Some(owned) => owned,
                None => return check_not_lost(&hold, "release", context.now()),
            }
        }
    };
    last.release_with(with).await
}
