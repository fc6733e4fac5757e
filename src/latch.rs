//! The count-down latch.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::call_once::{CopyAnswer, call_once};
use crate::config::MIN_LEASE;
use crate::error::{Error, ErrorKind, Result};
use crate::handle::Primitive;
use crate::hold::owner::HoldSource;
use crate::inspect::{Labels, WaiterState, clients_of};
use crate::protocol::kind::Kind;
use crate::protocol::latch::reply::{CountedDown, LatchDeleted, LatchInspected, LatchSet};
use crate::protocol::limits::{MAX_LISTED, WRITE};

pub use wait::LatchWait;

mod wait;

/// The largest count of a latch: 1,048,576.
pub const MAX_LATCH_COUNT: u32 = WRITE;

/// The longest time to live of a latch: 30 days.
pub const MAX_LATCH_TTL: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A named count that programs on many machines count down and wait for. The latch is open when the count is zero.
///
/// Returned by [`Client::latch`](crate::Client::latch). A handle is cheap to make and to clone, and stores nothing in
/// Redis.
///
/// # Guarantees
/// - When the count reaches zero, all waiters in all programs are notified, without polling. One command notifies 1,000
///   waiters. The client that counted down to zero repeats it in the background until all are notified.
/// - Each [`count_down`](Self::count_down) counts once, even if its request is sent several times.
/// - A waiter whose message was lost, or that could not be reached, finds the latch open after a bounded wait: at most
///   a third of the client's lease after it can reach the server again.
/// - An open latch stays open until it is set again or its time to live ends.
///
/// # Not guaranteed
/// A latch ends after its time to live, even if it is not counted down. A waiter that cannot know whether the latch was
/// open before it ended gets [`Lost`](ErrorKind::Lost), at most a third of the client's lease after the end. If the
/// latch is set again before that, the waiter waits for the new count.
///
/// Replicas do not acknowledge what changes a latch. After a failover to a replica that has not heard of a count, the
/// latch stays closed, and its waiters get [`Lost`](ErrorKind::Lost) when it ends.
///
/// A waiter whose message was lost gets [`Lost`](ErrorKind::Lost) as well if the latch is open and is set again before
/// the waiter has asked.
///
/// # Redis keys
/// - `<prefix>:latch:{<name>}`, the count, expires after the time to live.
/// - `...:tickets`, the waiters, expires 1 h after the last heartbeat.
/// - `...:calls` recognises late copies of requests. It expires one `retry_timeout` and one `command_timeout` after the
///   last call that changed the latch or was sent more than once.
///
/// # Examples
/// ```no_run
/// # use std::time::Duration;
/// # async fn example(client: bowline::Client) -> bowline::Result<()> {
/// // In every program, before anything else: a latch that is not set counts nothing and lets everybody through.
/// let started = client.latch("workers started");
/// started.try_set(3, Duration::from_secs(3600)).await?;
///
/// // In each of three workers:
/// started.count_down().await?;
///
/// // In the program that needs all workers:
/// started.wait().timeout(Duration::from_secs(60)).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct CountDownLatch {
    primitive: Primitive,
}

impl CountDownLatch {
    pub(crate) fn new(source: &Arc<HoldSource>, name: &str) -> Self {
        Self { primitive: Primitive::new(source, Kind::Latch, name) }
    }

    /// Sets the count to `count`, 1 to [`MAX_LATCH_COUNT`], if there is no latch of this name or it is open. The new
    /// latch ends after `ttl`, 100 ms to [`MAX_LATCH_TTL`].
    ///
    /// Returns whether the count was set. `false` is no error: a latch of this name is still being counted down, and
    /// keeps its count and its time to live. The waiters of an open latch are notified before it is set again.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for an invalid name, count or time to live, and the errors of a server
    /// that does not answer or refuses.
    ///
    /// # Cancel safety
    /// After the future is dropped, the latch may or may not have been set.
    pub async fn try_set(&self, count: u32, ttl: Duration) -> Result<bool> {
        const OPERATION: &str = "try_set";
        let keys = self.primitive.keys(OPERATION)?;
        let invalid =
            |reason: String| Err(Error::because(ErrorKind::InvalidInput, OPERATION, reason).with_name(&keys.name));
        if !(1..=MAX_LATCH_COUNT).contains(&count) {
            return invalid(format!("count must be 1 to {MAX_LATCH_COUNT}, not {count}"));
        }
        if !(MIN_LEASE..=MAX_LATCH_TTL).contains(&ttl) {
            return invalid(format!("ttl must be 100 ms to 30 days, not {ttl:?}"));
        }
        call_once(&self.primitive, OPERATION, |scripts, keys, call| {
            Box::pin(async move {
                Ok(match scripts.set_latch(keys, call, count, ttl).await? {
                    LatchSet::Set { now } => (CopyAnswer::Done { outcome: true, call_again: false }, now),
                    LatchSet::Exists { count: _, now } => (CopyAnswer::Done { outcome: false, call_again: false }, now),
                    LatchSet::More { now } => (CopyAnswer::Again, now),
                    LatchSet::Stale { now } => (CopyAnswer::Stale, now),
                })
            })
        })
        .await
    }

    /// Counts down by one and returns the remaining count. At zero all waiters are notified. If the latch does not
    /// exist or is open, the call changes nothing and returns zero.
    ///
    /// If the first answer is lost, the call returns the count at the time of a later answer. Others may have counted
    /// down in between, so two calls can return the same number, including zero. Use [`wait`](Self::wait) to learn that
    /// the latch is open.
    ///
    /// # Errors
    /// - [`InvalidInput`](ErrorKind::InvalidInput): the name is invalid. Nothing was sent.
    /// - [`Unavailable`](ErrorKind::Unavailable) and other errors of the server: the call may or may not have counted.
    ///
    /// # Cancel safety
    /// After the future is dropped, the call may or may not have counted.
    pub async fn count_down(&self) -> Result<u64> {
        call_once(&self.primitive, "count_down", |scripts, keys, call| {
            Box::pin(async move {
                Ok(match scripts.count_down_latch(keys, call).await? {
                    CountedDown::Count { count, call_again, now } => {
                        (CopyAnswer::Done { outcome: count, call_again }, now)
                    }
                    CountedDown::Stale { now } => (CopyAnswer::Stale, now),
                })
            })
        })
        .await
    }

    /// Reads the remaining count, which is zero if there is no latch. It may have changed when the answer arrives.
    ///
    /// # Errors
    /// Those of [`inspect`](Self::inspect).
    ///
    /// # Cancel safety
    /// Reads only. Dropping the future changes nothing in Redis.
    pub async fn count(&self) -> Result<u64> {
        let inspected = self.primitive.ask("count", |scripts, keys| scripts.inspect_latch(keys, 0)).await?;
        self.primitive.context().observe(inspected.now);
        Ok(inspected.count)
    }

    /// Waits until the count is zero. Returns at once if it is zero already or if there is no latch. Set a timeout on
    /// the result if needed, then await it.
    pub fn wait(&self) -> LatchWait {
        LatchWait::own(&self.primitive)
    }

    /// Reads the count, the remaining time to live and the number of waiters. All are read at the same moment, and may
    /// have changed when the answer arrives.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for an invalid name, and the errors of a server that does not answer
    /// or refuses.
    ///
    /// # Cancel safety
    /// Reads only. Dropping the future changes nothing in Redis.
    pub async fn inspect(&self) -> Result<LatchState> {
        let LatchInspected { count, left, waiters, queue, now } =
            self.primitive.ask("inspect", |scripts, keys| scripts.inspect_latch(keys, MAX_LISTED)).await?;
        self.primitive.context().observe(now);
        let labels = Labels::read(self.primitive.context(), clients_of([], &queue)).await;
        Ok(LatchState { count, remaining: left, waiters, queue: labels.queue(queue) })
    }

    /// Ends the latch, whatever its count, and returns whether there was one. Its waiters get
    /// [`Lost`](ErrorKind::Lost).
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for an invalid name, and the errors of a server that does not answer
    /// or refuses.
    ///
    /// # Cancel safety
    /// After the future is dropped, the latch may or may not have been deleted.
    pub async fn delete(&self) -> Result<bool> {
        call_once(&self.primitive, "delete", |scripts, keys, call| {
            Box::pin(async move {
                Ok(match scripts.delete_latch(keys, call).await? {
                    LatchDeleted::Done { existed, call_again, now } => {
                        (CopyAnswer::Done { outcome: existed, call_again }, now)
                    }
                    LatchDeleted::Stale { now } => (CopyAnswer::Stale, now),
                })
            })
        })
        .await
    }
}

impl fmt::Debug for CountDownLatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountDownLatch").field("name", &self.primitive.name()).finish_non_exhaustive()
    }
}

/// The state of a latch, as read by [`CountDownLatch::inspect`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct LatchState {
    /// The remaining count. Zero if there is no latch.
    pub count: u64,
    /// The remaining time to live. `None` if there is no latch.
    #[cfg_attr(feature = "serde", serde(with = "crate::duration_text::optional", default))]
    pub remaining: Option<Duration>,
    /// The number of waiters, without those whose tickets have expired.
    pub waiters: u64,
    /// At most 100 of the waiters, in no order.
    #[cfg_attr(feature = "serde", serde(default))]
    pub queue: Vec<WaiterState>,
}
