//! The semaphore.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::acquire::builder::{Acquire, TryAcquire};
use crate::context::Context;
use crate::error::Result;
use crate::guard::Permit;
use crate::handle::Primitive;
use crate::owned::Owned;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::key::check_limit;
use crate::protocol::kind::Kind;
use crate::protocol::limits::WRITE;
use crate::protocol::permits::reply::{Limited, PermitHold};
use crate::reentry::Reentry;

/// The most permits a semaphore can have.
pub const MAX_PERMITS: u32 = WRITE - 1;

/// A named number of permits that programs on many machines share. Made by
/// [`Client::semaphore`](crate::Client::semaphore).
///
/// # Guarantees
/// Those of [`Lock`](crate::Lock) but the token, and:
/// - The valid [`Permit`]s of a name are never more than its limit.
/// - Permits are leases, kept by the client's watchdog. Those of a program that died come back with the end of their
///   leases; what comes back later than that is not credited again.
/// - First come, first served: a request for many permits is not starved by requests for few.
///   [Non-fair](Acquire::non_fair) acquisitions of one client share tickets: they cost less, and pass others by a bounded
///   number and time.
///
/// # Not guaranteed
/// A permit is a lease, not a count in this process's memory: a program that is paused past its lease goes on without
/// one, and there is no fencing token that storage could refuse it by, because several hold permits at a time. Where
/// that matters, use a [`Lock`](crate::Lock).
///
/// # The limit
/// Each handle brings its own, which should be the same everywhere; [`set_limit`](Self::set_limit) stores one in Redis
/// that wins over them.
///
/// # Redis keys
/// `<prefix>:sem:{<name>}` and `...:leases` for the longest lease, 24 h with a stored limit; `...:queue` and `...:tickets`
/// while somebody waits (at most 1 h after the last sign of life).
///
/// # Examples
/// ```no_run
/// # async fn example(client: bowline::Client) -> bowline::Result<()> {
/// let uploads = client.semaphore("uploads", 8);
/// let one = uploads.acquire().await?;
/// let three = uploads.acquire_many(3).await?;
/// one.release().await?;
/// three.release().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Semaphore {
    primitive: Primitive,
    limit: u32,
}

impl Semaphore {
    pub(crate) fn new(context: Arc<Context>, reentry: Arc<Reentry<Owned>>, name: &str, limit: u32) -> Self {
        Self { primitive: Primitive::new(context, reentry, Kind::Semaphore { limit }, name), limit }
    }

    /// Acquires one permit. Await the result, or set options first.
    pub fn acquire(&self) -> Acquire<Permit> {
        self.acquire_many(1)
    }

    /// Acquires `count` permits at once. Zero is an error, and so is more than the limit.
    pub fn acquire_many(&self, count: u32) -> Acquire<Permit> {
        Acquire::new(&self.primitive, "acquire", count, Permit::new)
    }

    /// Acquires one permit if one is free and nobody waits; `None` if not.
    pub fn try_acquire(&self) -> TryAcquire<Permit> {
        self.try_acquire_many(1)
    }

    /// Acquires `count` permits if they are free and nobody waits; `None` if not.
    pub fn try_acquire_many(&self, count: u32) -> TryAcquire<Permit> {
        TryAcquire::new(&self.primitive, "try_acquire", count, Permit::new)
    }

    /// How many permits nobody holds. It may be outdated when it arrives.
    ///
    /// # Errors
    /// As [`inspect`](Self::inspect).
    ///
    /// # Cancel safety
    /// Changes nothing.
    pub async fn available(&self) -> Result<u32> {
        let state = self.look("available").await?;
        Ok(state.limit.saturating_sub(state.used))
    }

    /// Who holds how many permits and how many wait, as one consistent look. It may be outdated when it arrives.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a bad name or limit; the server's, if it does not answer.
    ///
    /// # Cancel safety
    /// Changes nothing.
    pub async fn inspect(&self) -> Result<SemaphoreState> {
        self.look("inspect").await
    }

    /// Stores a limit in Redis, which wins over those of the handles for 24 h after the semaphore was used last.
    ///
    /// A larger one lets those in who wait. A smaller one takes nothing from those who hold permits; as they give them
    /// back, nobody is let in until it is kept. Waiters that want more than it fail with
    /// [`OverLimit`](crate::ErrorKind::OverLimit).
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a bad name, or a limit that is not 1 to [`MAX_PERMITS`]; the server's,
    /// if it does not answer.
    ///
    /// # Cancel safety
    /// Dropped, the limit may be stored or not.
    pub async fn set_limit(&self, limit: u32) -> Result<()> {
        const OPERATION: &str = "set_limit";
        let Primitive { context, .. } = &self.primitive;
        let keys = self.primitive.keys(OPERATION)?;
        check_limit(limit).map_err(|error| error.during(OPERATION).with_name(&keys.name))?;
        let mut retry = context.retry(OPERATION, &keys.name);
        loop {
            let sent = context.now();
            // Late, it could undo what somebody else has set since.
            let not_after = context.not_after(sent, None);
            match context.scripts().set_limit(keys, limit, not_after).await {
                Ok(Limited::Limit { more, now }) => {
                    context.observe(now);
                    if more {
                        context.engine.promote_later(keys, context.now(), context.config.lease);
                    }
                    return Ok(());
                }
                Ok(Limited::Stale { now }) => context.observe(now),
                Err(failure) => retry.again_after(failure).await?,
            }
        }
    }

    async fn look(&self, operation: &'static str) -> Result<SemaphoreState> {
        let inspected = self.primitive.ask(operation, |scripts, keys| scripts.inspect(keys, self.limit)).await?;
        self.primitive.context.observe(inspected.now);
        let holder = |hold: PermitHold| PermitState {
            client: AttemptId::client_of(&hold.attempt_id),
            count: hold.units,
            remaining: hold.left,
        };
        Ok(SemaphoreState {
            limit: inspected.limit,
            used: inspected.used,
            holders: inspected.holds.into_iter().map(holder).collect(),
            waiters: inspected.waiters,
        })
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.primitive.name();
        f.debug_struct("Semaphore").field("name", &name).field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// What [`Semaphore::inspect`] saw.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SemaphoreState {
    /// The limit in force: the one stored in Redis, else that of the handle.
    pub limit: u32,
    /// How many permits are held. More than the limit, if it was made smaller meanwhile.
    pub used: u32,
    /// Who holds them: the thousand whose leases end first, if there are more.
    pub holders: Vec<PermitState>,
    /// How many tickets wait in Redis, as in [`LockState::waiters`](crate::LockState::waiters): a client's
    /// [line](Acquire::non_fair) has no more tickets than acquisitions that stand in it, and often fewer.
    pub waiters: u64,
}

/// One holder that [`Semaphore::inspect`] saw.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PermitState {
    /// The [`Client::id`](crate::Client::id) of its client; `None` if it was not written by bowline.
    pub client: Option<Uuid>,
    /// How many permits it has.
    pub count: u32,
    /// What is left of its lease, by the server's clock.
    pub remaining: Duration,
}
