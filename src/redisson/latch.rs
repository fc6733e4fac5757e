//! The count-down latch that Java programs share.

use std::fmt;

use crate::error::{Error, ErrorKind, Result};
use crate::handle::Primitive;
use crate::latch::LatchWait;
use crate::protocol::key::SharedCounter;
use crate::redisson::changed::changed;

/// A latch that Java programs use as an `RCountDownLatch`: a named count that both sides count down and wait for. The
/// latch is open when the count is zero.
///
/// Returned by [`Redisson::count_down_latch`](crate::Redisson::count_down_latch). A handle is cheap to make and to
/// clone, and stores nothing in Redis.
///
/// # Guarantees
/// - Each [`count_down`](Self::count_down) of bowline counts once, and each [`try_set_count`](Self::try_set_count) sets
///   once, even if its request is sent several times.
/// - When the count reaches zero, all that wait are notified by one message, in both languages.
/// - A waiter of bowline whose message was lost finds the latch open after a third of the client's lease at most. If it
///   cannot reach the server then, it finds it open when it can, unless one
///   [`retry_timeout`](crate::ConfigBuilder::retry_timeout) passes before: then the wait fails.
///
/// # Not guaranteed
/// - A waiter of Java has no reason to look but the message. If that is lost, it waits on.
/// - Replicas do not acknowledge what changes a latch. After a failover to a replica that has not heard of a count, the
///   latch stays closed.
/// - A latch never expires. If a program dies that should have counted down, the others wait until somebody does.
/// - A latch that is deleted, by Java or by the server, is open. If it is set again before a waiter has looked, the
///   waiter waits for the new count.
///
/// # Redis keys
/// - `<name>`, the count, is deleted when the latch is open, and never expires.
/// - `<prefix>:call:{<name>}:<id>` recognises late copies of a request. It expires one
///   [`retry_timeout`](crate::ConfigBuilder::retry_timeout) and one
///   [`command_timeout`](crate::ConfigBuilder::command_timeout) after the call.
///
/// # Examples
/// ```no_run
/// # use std::time::Duration;
/// # async fn example(client: bowline::Client) -> bowline::Result<()> {
/// let started = client.redisson().count_down_latch("workers started");
/// started.try_set_count(3).await?;
///
/// // In each of three workers, in Java or Rust:
/// started.count_down().await?;
///
/// // In the program that needs all workers:
/// started.wait().timeout(Duration::from_secs(60)).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct RedissonCountDownLatch {
    primitive: Primitive<SharedCounter>,
}

impl RedissonCountDownLatch {
    pub(super) fn new(primitive: Primitive<SharedCounter>) -> Self {
        Self { primitive }
    }

    /// Sets the count, from 1 on, if none is stored. Returns whether it was set. The call that opens a latch deletes
    /// its count. A zero that another program has stored is open as well, but stays until the next
    /// [`count_down`](Self::count_down), and nothing is set.
    ///
    /// # Errors
    /// - [`InvalidInput`](ErrorKind::InvalidInput): the name is invalid, or the count is zero. Nothing was sent. In a
    ///   cluster, a name with a `}` is invalid, because Redisson cannot use it there either.
    /// - [`Denied`](ErrorKind::Denied): the user may not publish to the channel. Nothing was changed.
    /// - [`WrongType`](ErrorKind::WrongType): the name is that of something else.
    /// - [`Unavailable`](ErrorKind::Unavailable) and other errors of the server: the latch may or may not have been
    ///   set.
    ///
    /// # Cancel safety
    /// After the future is dropped, the latch may or may not have been set.
    pub async fn try_set_count(&self, count: u32) -> Result<bool> {
        const OPERATION: &str = "try_set_count";
        let counter = self.primitive.keys(OPERATION)?;
        if count == 0 {
            let error = Error::because(ErrorKind::InvalidInput, OPERATION, "the count must not be zero");
            return Err(error.with_name(&counter.name));
        }
        changed(
            &self.primitive,
            OPERATION,
            |_| {},
            |scripts, counter, copy| Box::pin(async move { scripts.set_shared(counter, copy, count).await }),
        )
        .await
    }

    /// Counts down by one and returns the remaining count. At zero the latch is deleted, and all that wait are
    /// notified. If there is no latch, the call changes nothing and returns zero.
    ///
    /// # Errors
    /// Those of [`try_set_count`](Self::try_set_count). After [`Unavailable`](ErrorKind::Unavailable), the call may or
    /// may not have counted. Without the right to publish, only the last call fails, and does not count.
    ///
    /// # Cancel safety
    /// After the future is dropped, the call may or may not have counted.
    pub async fn count_down(&self) -> Result<u64> {
        changed(
            &self.primitive,
            "count_down",
            |_| {},
            |scripts, counter, copy| Box::pin(async move { scripts.count_down_shared(counter, copy).await }),
        )
        .await
    }

    /// Reads the remaining count, which is zero if there is no latch. It may have changed when the answer arrives.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for an invalid name, [`WrongType`](ErrorKind::WrongType) if it is that
    /// of something else, and the errors of a server that does not answer or refuses.
    ///
    /// # Cancel safety
    /// Reads only. Dropping the future changes nothing in Redis.
    pub async fn count(&self) -> Result<u64> {
        let (count, now) = self.primitive.ask("count", |scripts, counter| scripts.shared_count(counter)).await?;
        self.primitive.context().observe(now);
        Ok(count)
    }

    /// Waits until the count is zero. Returns at once if it is zero already or if there is no latch. Set a timeout on
    /// the result if needed, then await it.
    ///
    /// The errors of a connection that cannot subscribe to the channel of the latch are those of the wait. It never
    /// ends with [`Lost`](ErrorKind::Lost). On one server and behind sentinels, a client has one connection more for
    /// each name that it waits for.
    pub fn wait(&self) -> LatchWait {
        LatchWait::redisson(&self.primitive)
    }
}

impl fmt::Debug for RedissonCountDownLatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedissonCountDownLatch").field("name", &self.primitive.name()).finish_non_exhaustive()
    }
}
