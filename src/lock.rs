//! The lock.

use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use uuid::Uuid;

use crate::acquire::{Request, acquire};
use crate::config::check_lease;
use crate::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::guard::{LockGuard, Owned};
use crate::holder::Holder;
use crate::key::LockKeys;
use crate::reentry::Reentry;
use crate::ticket::WireId;
use crate::token::Token;

/// A named lock that programs on many machines can hold one at a time. Made by [`Client::lock`](crate::Client::lock);
/// cheap to make and to clone, and nothing in Redis until it is acquired.
///
/// # Guarantees
/// - At most one valid [`LockGuard`] per name, by the terms stated there.
/// - A release hands the lock to the next waiter inside the same command: a contended acquisition costs two commands
///   of this client, whoever waits, and no polling.
/// - A waiter whose message was lost, whose predecessor died or whose server restarted is served after a bounded wait:
///   at most a third of its lease after it can reach the server again, or when the lease in its way ends.
/// - Any future may be dropped at any point. What it had in Redis is cancelled in the background.
///
/// # Not guaranteed
/// The lock is a lease with a [fencing token](LockGuard::token), not a mutex: see [`LockGuard`].
///
/// # Fairness
/// Acquisitions queue in Redis and are served first come, first served across all processes, except those whose client
/// does not listen at that moment; these keep their place. The choice between [`fair`](Acquire::fair) and
/// [`non_fair`](Acquire::non_fair) is made at each call; both exclude each other. At present non-fair acquisitions
/// queue like fair ones.
///
/// # Redis keys
/// `<prefix>:lock:{<name>}` for the length of the lease, `...:queue` and `...:tickets` while somebody waits (at most
/// 1 h after the last sign of life), and `...:fence`, the counter of the tokens, for 24 h after the last grant.
///
/// # Examples
/// ```no_run
/// # use std::time::Duration;
/// # async fn example(client: bowline::Client) -> bowline::Result<()> {
/// let orders = client.lock("orders:42");
///
/// let guard = orders.lock().fair().timeout(Duration::from_secs(2)).await?;
/// println!("holding with token {}", guard.token());
/// guard.release().await?;
///
/// if let Some(guard) = orders.try_lock().await? {
///     guard.protect(async { /* stops if the lease is lost */ }).await?;
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Lock {
    context: Arc<Context>,
    reentry: Arc<Reentry<Owned>>,
    /// A bad name is an error of the first operation.
    keys: Result<Arc<LockKeys>>,
}

impl Lock {
    pub(crate) fn new(context: Arc<Context>, reentry: Arc<Reentry<Owned>>, name: &str) -> Self {
        let keys = LockKeys::new(&context.config.prefix, name).map(Arc::new);
        Self { context, reentry, keys }
    }

    /// Acquires the lock, waiting for it if need be. Await the result, or set options first.
    pub fn lock(&self) -> Acquire<'_> {
        Acquire { options: Options::new(self) }
    }

    /// Acquires the lock if it is free and nobody waits for it; `None` if not.
    pub fn try_lock(&self) -> TryAcquire<'_> {
        TryAcquire { options: Options::new(self) }
    }

    /// Who holds the lock and how many wait, as one consistent look. It may be outdated when it arrives.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for a bad name; the server's, if it does not answer.
    ///
    /// # Cancel safety
    /// Changes nothing.
    pub async fn inspect(&self) -> Result<LockState> {
        const OPERATION: &str = "inspect";
        let keys = self.keys(OPERATION)?;
        let mut tries = self.context.tries(OPERATION, &keys.name);
        let inspected = loop {
            match self.context.scripts().inspect(keys).await {
                Ok(inspected) => break inspected,
                Err(failure) => tries.again_after(failure).await?,
            }
        };
        self.context.observe(inspected.now);
        let holder = inspected.holder.map(|(wire_id, token, remaining)| HolderState {
            client: WireId::client_of(&wire_id),
            token,
            remaining: remaining.unwrap_or_default(),
        });
        Ok(LockState { holder, waiters: inspected.waiters })
    }

    /// For operators: takes the lock from whoever holds it and hands it to the next waiter.
    ///
    /// The old holder is told at once ([`Loss::Revoked`](crate::Loss::Revoked)) if its client listens, and may still
    /// act until it is. The returned token is larger than the old holder's and smaller than the next one's: give it
    /// to the protected resource to fence the old holder out now. `None`: nobody held the lock.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for a bad name; the server's, if it does not answer.
    ///
    /// # Cancel safety
    /// Dropped, it may have released or not. Called again it never takes the lock from somebody who was given it
    /// meanwhile by the same call.
    pub async fn force_release(&self) -> Result<Option<Token>> {
        const OPERATION: &str = "force_release";
        let keys = self.keys(OPERATION)?;
        let mut tries = self.context.tries(OPERATION, &keys.name);
        let wire_id = loop {
            match self.context.scripts().inspect(keys).await {
                Ok(inspected) => break inspected.holder.map(|(wire_id, ..)| wire_id),
                Err(failure) => tries.again_after(failure).await?,
            }
        };
        let Some(wire_id) = wire_id else { return Ok(None) };
        loop {
            match self.context.scripts().force_release(keys, &wire_id).await {
                Ok(released) => {
                    self.context.observe(released.now);
                    if released.more {
                        self.context.ledger.promote_later(keys, self.context.now(), self.context.config.lease);
                    }
                    return Ok(released.token);
                }
                Err(failure) => tries.again_after(failure).await?,
            }
        }
    }

    fn keys(&self, operation: &'static str) -> Result<&Arc<LockKeys>> {
        let keys = self.keys.as_ref().map_err(Clone::clone)?;
        if self.context.ledger.is_closed() {
            return Err(self.context.closed(operation, keys));
        }
        Ok(keys)
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").field("name", &self.keys.as_ref().map(|keys| &keys.name).ok()).finish_non_exhaustive()
    }
}

/// What [`Lock::inspect`] saw.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockState {
    /// Who holds the lock, if anybody does.
    pub holder: Option<HolderState>,
    /// How many acquisitions wait, those left out whose sign of life has expired.
    pub waiters: u64,
}

/// The holder that [`Lock::inspect`] saw.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HolderState {
    /// The [`Client::id`](crate::Client::id) of its client; `None` if the key was not written by bowline.
    pub client: Option<Uuid>,
    /// Its fencing token.
    pub token: Token,
    /// What is left of its lease, by the server's clock.
    pub remaining: Duration,
}

/// An acquisition to be awaited: see [`Lock::lock`]. Nothing is sent before that.
///
/// # Errors
/// - [`TimedOut`](ErrorKind::TimedOut), [`QueueFull`](ErrorKind::QueueFull): by the options.
/// - [`InvalidInput`](ErrorKind::InvalidInput): a bad name or option; nothing was sent.
/// - [`Unavailable`](ErrorKind::Unavailable), [`Refused`](ErrorKind::Refused): the server gave no usable answer for as
///   long as the client's [`patience`](crate::ConfigBuilder::patience).
/// - [`Denied`](ErrorKind::Denied), [`WrongType`](ErrorKind::WrongType), [`Protocol`](ErrorKind::Protocol): at once.
/// - [`Closed`](ErrorKind::Closed): the client was closed, also while waiting.
///
/// # Cancel safety
/// Dropping the future cancels the acquisition in the background, wherever it stood. The next waiter is served. Only
/// when the server cannot be reached may a ticket or a hold stay, for one lease at the longest.
#[derive(Clone, Debug)]
#[must_use = "an acquisition does nothing unless awaited"]
pub struct Acquire<'a> {
    options: Options<'a>,
}

impl Acquire<'_> {
    /// First come, first served across all processes. The default.
    pub fn fair(mut self) -> Self {
        self.options.fair = true;
        self
    }

    /// Prefers speed to order: acquisitions of one client may go before earlier ones of another, by a bounded number.
    /// At present the same as [`fair`](Self::fair).
    pub fn non_fair(mut self) -> Self {
        self.options.fair = false;
        self
    }

    /// The longest wait; without it, an acquisition waits as long as others hold the lock. Zero is an error: use
    /// [`try_lock`](Lock::try_lock).
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

    /// Acquires for this holder, re-entering what it holds already. Without it, the holder of the surrounding
    /// [`Holder::scope`] counts, if there is one.
    pub fn holder(mut self, holder: &Holder) -> Self {
        self.options.holder = Some(*holder);
        self
    }

    /// Fails with [`QueueFull`](ErrorKind::QueueFull) instead of waiting behind this many others or more. Zero is an
    /// error: use [`try_lock`](Lock::try_lock).
    pub fn max_waiters(mut self, limit: u32) -> Self {
        self.options.max_waiters = Some(limit);
        self
    }
}

impl<'a> IntoFuture for Acquire<'a> {
    type Output = Result<LockGuard>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let request = self.options.request("lock", true)?;
            match acquire(&self.options.lock.context, &request).await? {
                Some(owned) => Ok(LockGuard::new(owned)),
                // A waiting acquisition is never told "not now".
                None => Err(Error::new(ErrorKind::Protocol, "lock").with_name(&request.keys.name)),
            }
        })
    }
}

/// An attempt to acquire, to be awaited: see [`Lock::try_lock`]. `None`: somebody holds the lock or waits for it.
///
/// # Errors
/// As [`Acquire`], without [`QueueFull`](ErrorKind::QueueFull).
///
/// # Cancel safety
/// As [`Acquire`].
#[derive(Clone, Debug)]
#[must_use = "an acquisition does nothing unless awaited"]
pub struct TryAcquire<'a> {
    options: Options<'a>,
}

impl TryAcquire<'_> {
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

    /// See [`Acquire::holder`]. While another task acquires for the same holder, the answer is `None`.
    pub fn holder(mut self, holder: &Holder) -> Self {
        self.options.holder = Some(*holder);
        self
    }
}

impl<'a> IntoFuture for TryAcquire<'a> {
    type Output = Result<Option<LockGuard>>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let request = self.options.request("try_lock", false)?;
            Ok(acquire(&self.options.lock.context, &request).await?.map(LockGuard::new))
        })
    }
}

/// The choices of one acquisition.
#[derive(Clone, Debug)]
struct Options<'a> {
    lock: &'a Lock,
    fair: bool,
    timeout: Option<Duration>,
    lease: Option<Duration>,
    holder: Option<Holder>,
    max_waiters: Option<u32>,
}

impl<'a> Options<'a> {
    fn new(lock: &'a Lock) -> Self {
        Self { lock, fair: true, timeout: None, lease: None, holder: None, max_waiters: None }
    }

    fn request(&self, operation: &'static str, wait: bool) -> Result<Request> {
        let keys = self.lock.keys(operation)?;
        let invalid = |reason| Error::because(ErrorKind::InvalidInput, operation, reason).with_name(&keys.name);
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(invalid("a timeout of zero; try_lock does not wait"));
        }
        if self.max_waiters == Some(0) {
            return Err(invalid("max_waiters is zero; try_lock does not wait"));
        }
        if let Some(lease) = self.lease {
            check_lease(operation, lease).map_err(|error| error.with_name(&keys.name))?;
        }
        Ok(Request {
            operation,
            keys: keys.clone(),
            wait,
            lease: self.lease.unwrap_or(self.lock.context.config.lease),
            renewed: self.lease.is_none(),
            max_waiters: self.max_waiters.unwrap_or(0),
            timeout: self.timeout,
            holder: self.holder.or_else(Holder::current).map(|holder| (holder, self.lock.reentry.clone())),
        })
    }
}
