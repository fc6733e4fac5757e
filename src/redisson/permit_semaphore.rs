//! The semaphore that Java programs share, whose permits have leases.

use std::fmt;
use std::time::Duration;

use crate::acquire::builder::{Acquire, TryAcquire};
use crate::call_once::{CopyAnswer, outcome_of};
use crate::error::{Error, ErrorKind, Result};
use crate::handle::Primitive;
use crate::hold::guard::RedissonPermitGuard;
use crate::protocol::key::SharedCounter;
use crate::protocol::limits::MOST_INSPECTED;
use crate::protocol::shared_counter::Given;
use crate::protocol::timed_permits::{self, TimedInspected};
use crate::redisson::acquire::{check, check_change};
use crate::redisson::changed::{changed, give};

/// A semaphore that Java programs use as an `RPermitExpirableSemaphore`: a named number of permits, each of which has
/// an id and a lease.
///
/// Returned by [`Redisson::permit_semaphore`](crate::Redisson::permit_semaphore). A handle is cheap to make and to
/// clone, and stores nothing in Redis.
///
/// # Guarantees
/// - A permit is taken by one acquisition at a time, of all in both languages, under the conditions documented for
///   [`LockGuard`](crate::LockGuard), if the clocks of the Java programs are right and the settings agree.
/// - A permit of bowline is renewed by the watchdog for as long as its guard lives. The permits of a program that dies
///   are free again after one lease.
/// - Each call of bowline takes or gives once, even if its request is sent several times. What a dropped acquisition
///   may have taken is given back in the background, and ends with its lease at the latest.
/// - A release wakes those who wait, in both languages, by a message. If the message is lost, a waiter of bowline asks
///   again when the next lease ends, or after a third of its client's lease if that is earlier.
///
/// # Not guaranteed
/// - **The ends of leases are times of the server's clock for bowline, and of its own clock for each Java program.** A
///   Java program whose clock is ahead takes permits from holders by as much too early, and gives its own ones back by
///   as much too late. A guard that has lost its permit in this way finds out at its next renewal, a third of its lease
///   later at the latest.
/// - In Java, a permit that is taken without a lease never ends: if its program dies, somebody has to
///   [release it](Self::release_id).
/// - There is no order, and no bound of the wait: all that wait ask, and the first request gets the permit.
/// - There is no fencing token.
///
/// # Redis keys
/// - `<name>`, the number of free permits, and `{<name>}:timeout`, the ids of the others, do not expire, unless a Java
///   program calls `expire` on the semaphore.
/// - `<prefix>:call:{<name>}:<id>` recognises late copies of a request. It expires one
///   [`command_timeout`](crate::ConfigBuilder::command_timeout) after the call, and in addition:
///   - 1 s after an acquisition that was cancelled, a guard that was dropped, or the release of a permit that had been
///     asked for more than once;
///   - one [`retry_timeout`](crate::ConfigBuilder::retry_timeout) and 1 s after [`release_id`](Self::release_id);
///   - one `retry_timeout` after another call.
///
/// # Examples
/// ```no_run
/// # use std::time::Duration;
/// # async fn example(client: bowline::Client) -> bowline::Result<()> {
/// let printers = client.redisson().permit_semaphore("printers");
/// printers.try_set_permits(4).await?;
///
/// let permit = printers.acquire().timeout(Duration::from_secs(5)).await?;
/// permit.protect(async { /* stops if the permit is lost */ }).await?;
/// permit.release().await
/// # }
/// ```
#[derive(Clone)]
pub struct RedissonPermitSemaphore {
    permits: Primitive,
    counter: Primitive<SharedCounter>,
}

impl RedissonPermitSemaphore {
    pub(super) fn new(permits: Primitive, counter: Primitive<SharedCounter>) -> Self {
        Self { permits, counter }
    }

    /// Sets the number of permits, 1 to 2,147,483,647, if the semaphore has none stored, not even zero. Returns whether
    /// it was set.
    ///
    /// # Errors
    /// - [`InvalidInput`](ErrorKind::InvalidInput): the name or the number is invalid. Nothing was sent. In a cluster
    ///   the names that Redisson cannot use there are invalid, as for [`RedissonLock`](crate::RedissonLock).
    /// - [`Denied`](ErrorKind::Denied): the user may not publish to the channel. Nothing was changed.
    /// - [`WrongType`](ErrorKind::WrongType): the name is that of something else.
    /// - [`Unavailable`](ErrorKind::Unavailable) and other errors of the server: the call may or may not have been
    ///   executed.
    ///
    /// # Cancel safety
    /// After the future is dropped, the permits may or may not have been set.
    pub async fn try_set_permits(&self, permits: u32) -> Result<bool> {
        const OPERATION: &str = "try_set_permits";
        check(&self.counter, OPERATION, permits)?;
        changed(
            &self.counter,
            OPERATION,
            |_| {},
            |scripts, counter, copy| Box::pin(async move { scripts.set_shared(counter, copy, permits).await }),
        )
        .await
    }

    /// Sets the number of permits, 1 to 2,147,483,647, taken ones included. If more are taken than that, the first of
    /// them to be given back are not free again.
    ///
    /// # Errors
    /// Those of [`try_set_permits`](Self::try_set_permits).
    ///
    /// # Cancel safety
    /// After the future is dropped, the permits may or may not have been set.
    pub async fn set_permits(&self, permits: u32) -> Result<()> {
        const OPERATION: &str = "set_permits";
        check(&self.counter, OPERATION, permits)?;
        let answered = outcome_of(
            &self.permits,
            OPERATION,
            |_| {},
            |scripts, keys, copy| {
                Box::pin(async move {
                    let (answer, now) = scripts.set_timed(keys, copy, permits).await?;
                    let done = |()| CopyAnswer::Done { outcome: (), call_again: false };
                    Ok((answer.map_or(CopyAnswer::Stale, done), now))
                })
            },
        );
        answered.await.map(|_| ())
    }

    /// Adds so many permits to the semaphore, or takes them away if the number is negative. More may be taken away than
    /// are free: then those that are released next are missing.
    ///
    /// # Errors
    /// Those of [`try_set_permits`](Self::try_set_permits); zero and `i32::MIN` are invalid.
    ///
    /// # Cancel safety
    /// After the future is dropped, the permits may or may not have been added.
    pub async fn add_permits(&self, change: i32) -> Result<()> {
        const OPERATION: &str = "add_permits";
        check_change(&self.counter, OPERATION, change)?;
        give(&self.counter, OPERATION, Given::Permits(change.into())).await
    }

    /// Takes a permit, and waits until one is free. Set options on the result, then await it.
    ///
    /// By default the permit has the client's own [lease](crate::ConfigBuilder::lease), and the watchdog renews it.
    /// [`expires_after`](Acquire::expires_after) takes it for a fixed lease, as `acquire(lease, unit)` does in Java.
    ///
    /// There is no queue: [`fair`](Acquire::fair), [`max_waiters`](Acquire::max_waiters) and
    /// [`retained`](Acquire::retained) are [`InvalidInput`](ErrorKind::InvalidInput) errors. So is a name which
    /// Redisson cannot use in a cluster either. The errors of a connection that cannot subscribe to the channel of the
    /// semaphore are those of the acquisition. The first acquisition of a client tries whether its user may publish
    /// there.
    ///
    /// On one server and behind sentinels, a client has one connection more for each name that it waits for. After each
    /// message, each waiting acquisition sends a request.
    pub fn acquire(&self) -> Acquire<RedissonPermitGuard> {
        Acquire::<RedissonPermitGuard>::new(&self.permits, "acquire", 1).non_fair()
    }

    /// Takes a permit without waiting. Resolves to `None` if none is free.
    pub fn try_acquire(&self) -> TryAcquire<RedissonPermitGuard> {
        TryAcquire::<RedissonPermitGuard>::new(&self.permits, "try_acquire", 1).non_fair()
    }

    /// Reads how many permits are free, those whose leases are over included. It may have changed when the answer
    /// arrives.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for an invalid name, [`WrongType`](ErrorKind::WrongType) if it is that
    /// of something else, and the errors of a server that does not answer or refuses.
    ///
    /// # Cancel safety
    /// Reads only. Dropping the future changes nothing in Redis.
    pub async fn available(&self) -> Result<u64> {
        Ok(self.look("available", 0).await?.available)
    }

    /// Reads how many permits are taken, those whose leases are over not included.
    ///
    /// # Errors
    /// Those of [`available`](Self::available).
    ///
    /// # Cancel safety
    /// Reads only. Dropping the future changes nothing in Redis.
    pub async fn acquired(&self) -> Result<u64> {
        Ok(self.look("acquired", 0).await?.acquired)
    }

    /// Reads what is free, and the ids of the permits that are taken. Meant for operators: who takes a permit by its id
    /// takes it from its holder.
    ///
    /// # Errors
    /// Those of [`available`](Self::available).
    ///
    /// # Cancel safety
    /// Reads only. Dropping the future changes nothing in Redis.
    pub async fn inspect(&self) -> Result<RedissonPermitsState> {
        let TimedInspected { available, acquired, permits, .. } = self.look("inspect", MOST_INSPECTED).await?;
        let permits = permits.into_iter().map(|(id, remaining)| RedissonPermitState { id, remaining }).collect();
        Ok(RedissonPermitsState { available, acquired, permits })
    }

    async fn look(&self, operation: &'static str, listed: usize) -> Result<TimedInspected> {
        let seen = self.permits.ask(operation, |scripts, keys| scripts.inspect_timed(keys, listed)).await?;
        self.permits.context().observe(seen.now);
        Ok(seen)
    }

    /// Gives a permit back by its id, which the caller has from Java, from a guard that was
    /// [kept](RedissonPermitGuard::keep), or by [`inspect`](Self::inspect). Wakes those who wait. Returns whether the
    /// permit was taken: `false` if it was given back before or its lease is over.
    ///
    /// The id is 32 hexadecimal digits, as [`RedissonPermitGuard::id`] and Java spell it.
    ///
    /// # Errors
    /// - [`InvalidInput`](ErrorKind::InvalidInput): the name is invalid, or the id is none. Nothing was sent.
    /// - [`WrongType`](ErrorKind::WrongType): the name is that of something else.
    /// - [`Unavailable`](ErrorKind::Unavailable) and other errors of the server: the permit may or may not have been
    ///   given back.
    ///
    /// # Cancel safety
    /// After the future is dropped, the permit may or may not have been given back.
    pub async fn release_id(&self, id: &str) -> Result<bool> {
        const OPERATION: &str = "release_id";
        let (keys, context) = (self.permits.keys(OPERATION)?, self.permits.context());
        if id.len() != 32 || !id.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            let reason = "the id of a permit is 32 hexadecimal digits";
            return Err(Error::because(ErrorKind::InvalidInput, OPERATION, reason).with_name(&keys.name));
        }
        let id = &*id.to_ascii_lowercase();
        let caller = context.engine.fresh().map_err(|_| context.closed(OPERATION, keys))?;
        // Copies are sent for one retry timeout.
        let keep = timed_permits::keep(context.config.retry_timeout + context.config.command_timeout);
        let permits = &self.permits;
        permits.ask_in_time(OPERATION, |scripts, keys, _| scripts.release_timed(keys, id, (caller, keep))).await
    }
}

impl fmt::Debug for RedissonPermitSemaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedissonPermitSemaphore").field("name", &self.permits.name()).finish_non_exhaustive()
    }
}

/// The state of a semaphore whose permits have leases, as read by [`RedissonPermitSemaphore::inspect`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct RedissonPermitsState {
    /// How many permits are free.
    pub available: u64,
    /// How many permits are taken.
    pub acquired: u64,
    /// The permits that are taken: the 1,000 whose leases end first.
    pub permits: Vec<RedissonPermitState>,
}

/// A permit that is taken. Its holder is not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct RedissonPermitState {
    /// 32 hexadecimal digits, by which anybody may give the permit back.
    pub id: String,
    /// The rest of the lease. `None`: Java has taken the permit without a lease.
    #[cfg_attr(feature = "serde", serde(with = "crate::duration_text::optional", default))]
    pub remaining: Option<Duration>,
}
