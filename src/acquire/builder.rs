//! The choices of one acquisition, as builders that are awaited.

use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use crate::acquire::acquire;
use crate::error::{Error, ErrorKind, Result};
use crate::guard::{LockGuard, Reentrant};
use crate::handle::Primitive;
use crate::holder::Holder;
use crate::owned::Owned;

mod choices;

use choices::Options;

/// An acquisition to be awaited: see [`Lock::lock`](crate::Lock::lock), [`RwLock::read`](crate::RwLock::read),
/// [`RwLock::write`](crate::RwLock::write), [`Semaphore::acquire`](crate::Semaphore::acquire). Nothing is sent before
/// that.
///
/// # Errors
/// - [`TimedOut`](ErrorKind::TimedOut), [`QueueFull`](ErrorKind::QueueFull): by the options.
/// - [`InvalidInput`](ErrorKind::InvalidInput): a bad name or option; nothing was sent.
/// - [`OverLimit`](ErrorKind::OverLimit): more permits than the semaphore has.
/// - [`WouldDeadlock`](ErrorKind::WouldDeadlock): the holder reads, and asks to write.
/// - [`Unavailable`](ErrorKind::Unavailable), [`Refused`](ErrorKind::Refused): the server gave no usable answer for as
///   long as the client's [`retry_timeout`](crate::ConfigBuilder::retry_timeout); or three grants in a row took longer to arrive than
///   their lease.
/// - [`Denied`](ErrorKind::Denied), [`WrongType`](ErrorKind::WrongType), [`Protocol`](ErrorKind::Protocol): at once.
/// - [`Closed`](ErrorKind::Closed): the client was closed, also while waiting.
///
/// # Cancel safety
/// Dropping the future cancels the acquisition in the background, wherever it stood. The next waiter is served. Only
/// when the server cannot be reached may a ticket or a hold stay, for one lease at the longest.
///
/// # Examples
/// An acquisition owns all it needs: it can be kept, spawned as a task, and joined with others.
/// ```
/// # #[cfg(all(feature = "tokio", feature = "embedded"))]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// use std::future::IntoFuture;
///
/// use futures::future::try_join_all;
///
/// # let client = bowline::embedded::Server::new().client(bowline::tokio::Tokio::current()?).await?;
/// let kept = client.lock("orders:1").lock().timeout(Duration::from_secs(2));
/// let guard = kept.await?;
///
/// let task = tokio::spawn(client.lock("orders:2").lock().into_future());
/// let guards = try_join_all(["a", "b", "c"].map(|name| client.lock(name).lock().into_future())).await?;
/// # assert!(task.await??.is_valid() && guard.is_valid() && guards.len() == 3);
/// # Ok(()) }
/// # #[cfg(not(all(feature = "tokio", feature = "embedded")))]
/// # fn main() {}
/// ```
#[must_use = "an acquisition does nothing unless awaited"]
pub struct Acquire<G = LockGuard> {
    options: Options,
    pub(crate) guard: fn(Arc<Owned>) -> G,
}

impl<G> Acquire<G> {
    pub(crate) fn new(primitive: &Primitive, operation: &'static str, amount: u32, guard: fn(Arc<Owned>) -> G) -> Self {
        Self { options: Options::new(primitive, operation, amount), guard }
    }

    /// First come, first served across all processes. The default.
    pub fn fair(mut self) -> Self {
        self.options.fair = true;
        self
    }

    /// Prefers speed to order between processes. With the client's own renewed lease, the non-fair acquisitions of one client stand
    /// in cohorts of its own: those of a [`Lock`](crate::Lock), the writers of a [`RwLock`](crate::RwLock), and those who ask
    /// a [`Semaphore`](crate::Semaphore) for as many permits, by handles of the same limit. A cohort waits behind one ticket;
    /// what is released goes to the next in the cohort without asking Redis, with a larger token of its own if there are tokens.
    ///
    /// # Guaranteed
    /// - Within a cohort, who has waited for longest is next. Of a semaphore, only requests that are on their way may be
    ///   answered in another order.
    /// - A grant serves up to 32 of the cohort, and none of them later than
    ///   [`handoff_time`](crate::ConfigBuilder::handoff_time), 100 ms by default, after the first. Then the cohort queues up again,
    ///   behind those who wait. So others are passed by one grant at the most; of a semaphore, by those that the cohort had
    ///   before they came.
    /// - Only what is held is handed on: after a loss, or with less than half of the lease left, the next one asks Redis.
    /// - Permits that come free elsewhere are not left to others: one of the cohort always asks for more.
    ///
    /// # Not guaranteed
    /// - Order between a cohort and other acquisitions, those of the same client included: fair ones, tries, readers, and those
    ///   with a [lease](Self::lease) other than the client's, a [fixed one](Self::expires_after) or a
    ///   [limit](Self::hold_at_most) do not stand in a cohort.
    /// - That it goes on while the next in the cohort does not run: a future that is neither polled nor dropped when its turn
    ///   comes may keep its own cohort waiting, and keeps what it was given from everybody else until the lease ends.
    ///
    /// Everything else queues up as if it were [`fair`](Self::fair).
    pub fn non_fair(mut self) -> Self {
        self.options.fair = false;
        self
    }

    /// The longest wait; without it, an acquisition waits as long as others are in the way. Zero is an error: use the
    /// `try_` form. [`TimedOut`](ErrorKind::TimedOut) does not wait for the server: the ticket is cancelled in the background,
    /// and may be there for some milliseconds more.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// The lease of this hold, in place of the client's [default](crate::ConfigBuilder::lease): 100 ms
    /// ([`MIN_LEASE`](crate::MIN_LEASE)) to 24 h ([`MAX_LEASE`](crate::MAX_LEASE)). The watchdog renews it every third of its
    /// length for as long as the guard lives, so it bounds how long a crashed holder blocks the others, and not the hold.
    ///
    /// Re-entry keeps the lease of the hold. A lease other than the client's own keeps a [non-fair](Self::non_fair)
    /// acquisition out of the cohort.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.options.lease = Some(lease);
        self
    }

    /// A fixed lease: the hold ends after `lease`, 100 ms ([`MIN_LEASE`](crate::MIN_LEASE)) to 24 h
    /// ([`MAX_LEASE`](crate::MAX_LEASE)), and the watchdog does not renew it. `extend` of the guard, such as
    /// [`LockGuard::extend`], prolongs it. Combined with [`lease`](Self::lease) or [`hold_at_most`](Self::hold_at_most) it is
    /// an [`InvalidInput`](ErrorKind::InvalidInput) error: those are about renewed leases.
    ///
    /// Re-entry keeps the lease of the hold. A [non-fair](Self::non_fair) acquisition with a fixed lease stands in no cohort.
    pub fn expires_after(mut self, lease: Duration) -> Self {
        self.options.expires_after = Some(lease);
        self
    }

    /// The longest time for which the hold is renewed: at least 100 ms ([`MIN_LEASE`](crate::MIN_LEASE)), without an upper
    /// limit. The hold ends by itself ([`Loss::Expired`](crate::Loss::Expired)) at most this long after the grant, in Redis as
    /// well, whatever becomes of its guard. Each renewal asks for the lease, or for what is left, if that is less; so does the
    /// acquisition.
    ///
    /// The time is counted as the lease is: from before the last request that was answered before the grant was sent. After a
    /// wait in the queue, the hold may end earlier by as long as a third of the lease.
    ///
    /// Re-entry keeps the limit of the hold, and so do downgrade and upgrade. A [non-fair](Self::non_fair) acquisition with a
    /// limit stands in no cohort.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(client: bowline::Client) -> bowline::Result<()> {
    /// // A crash frees the lock within 5 s; a job that hangs loses it after 10 min.
    /// let limit = Duration::from_secs(600);
    /// let guard = client.lock("job").lock().lease(Duration::from_secs(5)).hold_at_most(limit).await?;
    /// # guard.release().await }
    /// ```
    pub fn hold_at_most(mut self, limit: Duration) -> Self {
        self.options.at_most = Some(limit);
        self
    }

    /// Fails with [`QueueFull`](ErrorKind::QueueFull) instead of waiting behind this many others or more, in Redis or in
    /// the client's own cohort. Counted when it begins to wait: a [cohort](Self::non_fair) that had its turn queues up again behind
    /// however many wait by then. Zero is an error: use the `try_` form.
    pub fn max_waiters(mut self, limit: u32) -> Self {
        self.options.max_waiters = Some(limit);
        self
    }
}

impl<G> Acquire<G> {
    pub(crate) async fn owned(self) -> Result<Arc<Owned>> {
        let request = self.options.request(true)?;
        // A waiting acquisition is never told "not now".
        let never = || Error::new(ErrorKind::Protocol, request.operation).with_name(&request.keys.name);
        acquire(&self.options.primitive, &request).await?.ok_or_else(never)
    }
}

impl<G: Reentrant> Acquire<G> {
    /// Acquires for this holder, re-entering what it holds already by this client. Without it, the holder of the surrounding
    /// [`Holder::scope`] counts, if there is one.
    pub fn holder(mut self, holder: &Holder) -> Self {
        self.options.holder = Some(*holder);
        self
    }
}

impl<G: 'static> IntoFuture for Acquire<G> {
    type Output = Result<G>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let guard = self.guard;
            Ok(guard(self.owned().await?))
        })
    }
}

/// An attempt to acquire, to be awaited: see [`Lock::try_lock`](crate::Lock::try_lock) and its like. `None`: somebody
/// is in the way, or waits already; or the answer came when the lease that it granted was over.
///
/// # Errors
/// As [`Acquire`], without [`QueueFull`](ErrorKind::QueueFull).
///
/// # Cancel safety
/// As [`Acquire`].
#[must_use = "an acquisition does nothing unless awaited"]
pub struct TryAcquire<G = LockGuard> {
    options: Options,
    pub(crate) guard: fn(Arc<Owned>) -> G,
}

impl<G> TryAcquire<G> {
    pub(crate) fn new(primitive: &Primitive, operation: &'static str, amount: u32, guard: fn(Arc<Owned>) -> G) -> Self {
        Self { options: Options::new(primitive, operation, amount), guard }
    }

    /// The longest wait for the server's answer.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// See [`Acquire::lease`].
    pub fn lease(mut self, lease: Duration) -> Self {
        self.options.lease = Some(lease);
        self
    }

    /// See [`Acquire::expires_after`].
    pub fn expires_after(mut self, lease: Duration) -> Self {
        self.options.expires_after = Some(lease);
        self
    }

    /// See [`Acquire::hold_at_most`].
    pub fn hold_at_most(mut self, limit: Duration) -> Self {
        self.options.at_most = Some(limit);
        self
    }
}

impl<G> TryAcquire<G> {
    pub(crate) async fn owned(self) -> Result<Option<Arc<Owned>>> {
        acquire(&self.options.primitive, &self.options.request(false)?).await
    }
}

impl<G: Reentrant> TryAcquire<G> {
    /// See [`Acquire::holder`]. While another task acquires for the same holder, the answer is `None`.
    pub fn holder(mut self, holder: &Holder) -> Self {
        self.options.holder = Some(*holder);
        self
    }
}

impl<G: 'static> IntoFuture for TryAcquire<G> {
    type Output = Result<Option<G>>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let guard = self.guard;
            Ok(self.owned().await?.map(guard))
        })
    }
}

// Not derived: a builder is what it is whatever its guard can do.
impl<G> Clone for Acquire<G> {
    fn clone(&self) -> Self {
        Self { options: self.options.clone(), guard: self.guard }
    }
}

impl<G> Clone for TryAcquire<G> {
    fn clone(&self) -> Self {
        Self { options: self.options.clone(), guard: self.guard }
    }
}

impl<G> fmt::Debug for Acquire<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.options.fmt(f)
    }
}

impl<G> fmt::Debug for TryAcquire<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.options.fmt(f)
    }
}
