//! The count-down latch.

use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use crate::acquire::{Request, acquire};
use crate::config::MIN_LEASE;
use crate::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::handle::Primitive;
use crate::owned::Owned;
use crate::protocol::kind::Kind;
use crate::protocol::latch::reply::{CountedDown, LatchDeleted, LatchSet};
use crate::protocol::limits::WRITE;
use crate::reentry::Reentry;
use crate::runtime::Executor;

use once::Said;

mod once;

/// The highest count that a latch can be set to.
pub const MAX_LATCH_COUNT: u32 = WRITE;

/// The longest that a latch can live.
pub const MAX_LATCH_TTL: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A named count that programs on many machines count down, and wait for to reach zero. Made by
/// [`Client::latch`](crate::Client::latch).
///
/// # Guarantees
/// - Everybody who waits, in every program, is let through when the count is zero: no polling. One command of the server
///   tells 1,000 waiters; the client that counted down to zero calls again in the background until all are told.
/// - Each [`count_down`](Self::count_down) counts once, however often its request had to be sent.
/// - A waiter whose message was lost, or who could not be reached, is let through after a bounded wait: at most a third
///   of the client's lease after it can reach the server again.
/// - A latch that is open stays open until it is set again or its time to live ends.
///
/// # Not guaranteed
/// A latch is data in Redis, and a time to live ends it, counted down or not. A waiter who cannot know whether it was
/// counted down before it ended is told so ([`Lost`](ErrorKind::Lost)) rather than let through: at most a third of the
/// client's lease after the end. If the latch is set anew before that, the waiter waits for the new one.
///
/// # Redis keys
/// `<prefix>:latch:{<name>}` for the time to live given when it is set; `...:tickets` while somebody waits; and
/// `...:calls` for the client's retry timeout and a command timeout after the last call that changed the latch or was sent more
/// than once, so that late copies of requests are known.
///
/// # Examples
/// ```no_run
/// # use std::time::Duration;
/// # async fn example(client: bowline::Client) -> bowline::Result<()> {
/// let started = client.latch("workers started");
/// started.try_set(3, Duration::from_secs(3600)).await?;
///
/// // In each of three workers:
/// started.count_down().await?;
///
/// // In whoever needs them all:
/// started.wait().timeout(Duration::from_secs(60)).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct CountDownLatch {
    primitive: Primitive,
}

impl CountDownLatch {
    pub(crate) fn new(context: Arc<Context>, reentry: Arc<Reentry<Owned>>, name: &str) -> Self {
        Self { primitive: Primitive::new(context, reentry, Kind::Latch, name) }
    }

    /// Sets the count, 1 to [`MAX_LATCH_COUNT`], if there is no latch of the name or it has been counted down; `false`: it is
    /// being counted down, and stays as it is. The latch ends after `ttl`, 100 ms to [`MAX_LATCH_TTL`]. If it was
    /// counted down and not everybody who waited has been told, they are told first.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for a bad name, count or time; the server's, if it does not answer.
    ///
    /// # Cancel safety
    /// Dropped, the latch may be set or not.
    pub async fn try_set(&self, count: u32, ttl: Duration) -> Result<bool> {
        const OPERATION: &str = "try_set";
        let keys = self.primitive.keys(OPERATION)?;
        let invalid =
            |reason: String| Err(Error::because(ErrorKind::InvalidInput, OPERATION, reason).with_name(&keys.name));
        if !(1..=MAX_LATCH_COUNT).contains(&count) {
            return invalid(format!("a count of {count}; it must be 1 to {MAX_LATCH_COUNT}"));
        }
        if !(MIN_LEASE..=MAX_LATCH_TTL).contains(&ttl) {
            return invalid(format!("a latch must live 100 ms to 30 days, not {ttl:?}"));
        }
        self.once(OPERATION, |scripts, keys, call| {
            Box::pin(async move {
                Ok(match scripts.set_latch(keys, call, count, ttl).await? {
                    LatchSet::Set { now } => (Said::Done { outcome: true, more: false }, now),
                    LatchSet::Exists { count: _, now } => (Said::Done { outcome: false, more: false }, now),
                    LatchSet::More { now } => (Said::Again, now),
                    LatchSet::Stale { now } => (Said::Stale, now),
                })
            })
        })
        .await
    }

    /// Counts down by one, and says what is left. At zero, everybody who waits is let through. A latch that does not
    /// exist, or is open, stays as it is: nothing is left.
    ///
    /// If the answer to the first request was lost, the number is what is left when the server answers a later one, and
    /// others may have counted down in between. So two calls may be told the same number, and each of them zero: use
    /// [`wait`](Self::wait), and not the number, to learn that the latch is open.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for a bad name; [`Unavailable`](ErrorKind::Unavailable) and the server's
    /// other answers: whether it counted is unknown.
    ///
    /// # Cancel safety
    /// Dropped, it may have counted or not.
    pub async fn count_down(&self) -> Result<u64> {
        self.once("count_down", |scripts, keys, call| {
            Box::pin(async move {
                Ok(match scripts.count_down_latch(keys, call).await? {
                    CountedDown::Count { count, more, now } => (Said::Done { outcome: count, more }, now),
                    CountedDown::Stale { now } => (Said::Stale, now),
                })
            })
        })
        .await
    }

    /// What is left to count down; zero if there is no such latch. It may be outdated when it arrives.
    ///
    /// # Errors
    /// As [`inspect`](Self::inspect).
    ///
    /// # Cancel safety
    /// Changes nothing.
    pub async fn count(&self) -> Result<u64> {
        Ok(self.look("count").await?.count)
    }

    /// Waits until the count is zero; at once if it is, or if there is no such latch. Await the result, or set a
    /// timeout first.
    pub fn wait(&self) -> LatchWait {
        LatchWait { primitive: self.primitive.clone(), timeout: None }
    }

    /// What there is of the latch, as one consistent look. It may be outdated when it arrives.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for a bad name; the server's, if it does not answer.
    ///
    /// # Cancel safety
    /// Changes nothing.
    pub async fn inspect(&self) -> Result<LatchState> {
        self.look("inspect").await
    }

    /// Ends the latch, whatever its count; `false`: there was none. Whoever waits is told that it ended
    /// ([`Lost`](ErrorKind::Lost)).
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for a bad name; the server's, if it does not answer.
    ///
    /// # Cancel safety
    /// Dropped, the latch may be deleted or not.
    pub async fn delete(&self) -> Result<bool> {
        self.once("delete", |scripts, keys, call| {
            Box::pin(async move {
                Ok(match scripts.delete_latch(keys, call).await? {
                    LatchDeleted::Done { existed, more, now } => (Said::Done { outcome: existed, more }, now),
                    LatchDeleted::Stale { now } => (Said::Stale, now),
                })
            })
        })
        .await
    }

    async fn look(&self, operation: &'static str) -> Result<LatchState> {
        let inspected = self.primitive.ask(operation, |scripts, keys| scripts.inspect_latch(keys)).await?;
        self.primitive.context.observe(inspected.now);
        Ok(LatchState { count: inspected.count, remaining: inspected.left, waiters: inspected.waiters })
    }
}

impl fmt::Debug for CountDownLatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountDownLatch").field("name", &self.primitive.name()).finish_non_exhaustive()
    }
}

/// What [`CountDownLatch::inspect`] saw.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LatchState {
    /// What is left to count down; zero if there is no such latch.
    pub count: u64,
    /// What is left of the time to live; `None` if there is no such latch.
    pub remaining: Option<Duration>,
    /// How many wait, those left out whose sign of life has expired.
    pub waiters: u64,
}

/// Waiting for a latch, to be awaited: see [`CountDownLatch::wait`].
///
/// # Errors
/// - [`TimedOut`](ErrorKind::TimedOut): by the option.
/// - [`InvalidInput`](ErrorKind::InvalidInput): a bad name or a timeout of zero; nothing was sent.
/// - [`Lost`](ErrorKind::Lost): the latch ended while it was waited for, and nobody knows whether it was counted down.
/// - [`Unavailable`](ErrorKind::Unavailable), [`Refused`](ErrorKind::Refused): the server gave no usable answer for as
///   long as the client's [`retry_timeout`](crate::ConfigBuilder::retry_timeout); others at once.
/// - [`Closed`](ErrorKind::Closed): the client was closed, also while waiting.
///
/// # Cancel safety
/// Dropping the future takes the waiter away in the background.
#[derive(Clone, Debug)]
#[must_use = "waiting does nothing unless awaited"]
pub struct LatchWait {
    primitive: Primitive,
    timeout: Option<Duration>,
}

impl LatchWait {
    /// The longest wait; without it, as long as it takes. Zero is an error: use [`CountDownLatch::count`].
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

impl LatchWait {
    pub(crate) fn executor(&self) -> &Arc<dyn Executor> {
        &self.primitive.context.executor
    }
}

impl IntoFuture for LatchWait {
    type Output = Result<()>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            const OPERATION: &str = "wait";
            let Primitive { context, .. } = &self.primitive;
            let keys = self.primitive.keys(OPERATION)?;
            if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
                let error =
                    Error::because(ErrorKind::InvalidInput, OPERATION, "a timeout of zero; count does not wait");
                return Err(error.with_name(&keys.name));
            }
            let request = Request {
                operation: OPERATION,
                keys: keys.clone(),
                amount: 1,
                wait: true,
                // Nothing is held; as long as this, a ticket lives without a heartbeat.
                lease: context.config.lease,
                renewed: false,
                at_most: None,
                max_waiters: 0,
                timeout: self.timeout,
                holder: None,
                fair: true,
                joins_cohort: false,
            };
            acquire(context, &request).await.map(drop)
        })
    }
}
