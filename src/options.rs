//! The choices of one acquisition, as builders that are awaited.

use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use crate::acquire::{Request, acquire};
use crate::config::check_lease;
use crate::error::{Error, ErrorKind, Result};
use crate::guard::{LockGuard, Reentrant};
use crate::holder::Holder;
use crate::key::{Keys, Kind, READ};
use crate::owned::Owned;
use crate::primitive::Primitive;

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
///   long as the client's [`patience`](crate::ConfigBuilder::patience); or three grants in a row took longer to arrive than
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
/// # let executor = std::sync::Arc::new(bowline::tokio::Tokio::current()?);
/// # let connection = std::sync::Arc::new(bowline::embedded::Server::new().connect(executor.clone()));
/// # let client = bowline::Client::new(executor, connection, bowline::Config::builder().build()?).await?;
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

    /// Prefers speed to order between processes. With the client's own lease, the non-fair acquisitions of one client stand
    /// in lines of its own: those of a [`Lock`](crate::Lock), the writers of a [`RwLock`](crate::RwLock), and those who ask
    /// a [`Semaphore`](crate::Semaphore) for as many permits, by handles of the same limit. A line waits behind one ticket;
    /// what is released goes to the next in the line without asking Redis, with a larger token of its own if there are tokens.
    ///
    /// # Guaranteed
    /// - Within a line, who has waited for longest is next. Of a semaphore, only requests that are on their way may be
    ///   answered in another order.
    /// - A grant serves up to 32 of the line, and none of them later than
    ///   [`line_time`](crate::ConfigBuilder::line_time), 100 ms by default, after the first. Then the line queues up again,
    ///   behind those who wait. So others are passed by one grant at the most; of a semaphore, by those that the line had
    ///   before they came.
    /// - Only what is held is handed on: after a loss, or with less than half of the lease left, the next one asks Redis.
    /// - Permits that come free elsewhere are not left to others: one of the line always asks for more.
    ///
    /// # Not guaranteed
    /// - Order between a line and other acquisitions, those of the same client included: fair ones, tries, fixed leases and
    ///   readers do not stand in a line.
    /// - That it goes on while the next in the line does not run: a future that is neither polled nor dropped when its turn
    ///   comes may keep its own line waiting, and keeps what it was given from everybody else until the lease ends.
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

    /// A fixed lease, [100 ms](crate::MIN_LEASE) to [24 h](crate::MAX_LEASE): the hold ends then, renewed by nobody.
    /// Without it the watchdog renews the client's default lease for as long as the guard lives. Re-entry keeps the
    /// lease of the hold.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.options.lease = Some(lease);
        self
    }

    /// Fails with [`QueueFull`](ErrorKind::QueueFull) instead of waiting behind this many others or more, in Redis or in
    /// the client's own line. Counted when it begins to wait: a [line](Self::non_fair) that had its turn queues up again behind
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
        acquire(&self.options.primitive.context, &request).await?.ok_or_else(never)
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
}

impl<G> TryAcquire<G> {
    pub(crate) async fn owned(self) -> Result<Option<Arc<Owned>>> {
        acquire(&self.options.primitive.context, &self.options.request(false)?).await
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

/// What both builders collect.
#[derive(Clone, Debug)]
struct Options {
    primitive: Primitive,
    operation: &'static str,
    amount: u32,
    fair: bool,
    timeout: Option<Duration>,
    lease: Option<Duration>,
    holder: Option<Holder>,
    max_waiters: Option<u32>,
}

impl Options {
    fn new(primitive: &Primitive, operation: &'static str, amount: u32) -> Self {
        Self {
            primitive: primitive.clone(),
            operation,
            amount,
            fair: true,
            timeout: None,
            lease: None,
            holder: None,
            max_waiters: None,
        }
    }

    fn request(&self, wait: bool) -> Result<Request> {
        let Self { primitive, operation, .. } = self;
        let operation = *operation;
        let keys = primitive.keys(operation)?;
        let invalid = |reason| Error::because(ErrorKind::InvalidInput, operation, reason).with_name(&keys.name);
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(invalid("a timeout of zero; the try_ form does not wait"));
        }
        if self.max_waiters == Some(0) {
            return Err(invalid("max_waiters is zero; the try_ form does not wait"));
        }
        if self.amount == 0 {
            return Err(invalid("zero permits"));
        }
        if let Some(lease) = self.lease {
            check_lease(operation, lease).map_err(|error| error.with_name(&keys.name))?;
        }
        let reentrant = keys.kind.is_reentrant();
        let holder = self.holder.or_else(Holder::current).filter(|_| reentrant);
        Ok(Request {
            operation,
            keys: keys.clone(),
            amount: self.amount,
            wait,
            lease: self.lease.unwrap_or(primitive.context.config.lease),
            renewed: self.lease.is_none(),
            max_waiters: self.max_waiters.unwrap_or(0),
            fair: self.fair,
            lines_up: wait && !self.fair && self.lease.is_none() && lines_up(keys, self.amount),
            timeout: self.timeout,
            holder: holder.map(|holder| (holder, primitive.reentry.clone())),
        })
    }
}

/// Readers do not: they hold it together, and need no line.
fn lines_up(keys: &Keys, amount: u32) -> bool {
    match keys.kind {
        Kind::Lock | Kind::Semaphore { .. } => true,
        Kind::ReadWrite => amount != READ,
        Kind::Latch => false,
    }
}
