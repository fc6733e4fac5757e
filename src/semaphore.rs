//! The semaphore.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::acquire::builder::{Acquire, TryAcquire};
use crate::acquire::resume::resume;
use crate::ask::ask_to_release;
use crate::drop_waiters::drop_waiters;
use crate::error::Result;
use crate::handle::Primitive;
use crate::hold::guard::Permit;
use crate::hold::hold_handle::HoldHandle;
use crate::hold::owner::HoldSource;
use crate::inspect::{Labels, WaiterState, clients_of};
use crate::names::changes::HoldChanges;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::key::check_limit;
use crate::protocol::kind::Kind;
use crate::protocol::limits::{MAX_LISTED, WRITE};
use crate::protocol::names::PrimitiveKind;
use crate::protocol::permits::reply::{PermitHold, PermitsInspected};
use crate::revoke::{Revoked, Whose, force_release};

/// The largest limit of a semaphore: 1,048,575.
pub const MAX_PERMITS: u32 = WRITE - 1;

/// A named number of permits that programs on many machines share.
///
/// Returned by [`Client::semaphore`](crate::Client::semaphore). A handle is cheap to make and to clone, and stores
/// nothing in Redis.
///
/// # Guarantees
/// Those of [`Lock`](crate::Lock) except the token, and:
/// - The valid [`Permit`]s of a name never exceed its limit.
/// - The client's watchdog renews the permits. The permits of a crashed program become free when their leases end. A
///   release that arrives after that adds no permit.
/// - Waiters are served in the order of arrival: requests for few permits cannot starve a request for many.
///   [Non-fair](Acquire::non_fair) acquisitions of one client share tickets: they cost less, and pass other waiters for
///   a limited number of grants and a limited time.
///
/// # Not guaranteed
/// A permit is a lease. A program that is paused past the end of its lease continues without a permit. There is no
/// fencing token, because several holders act at the same time and storage could not tell which of them is late. Use a
/// [`Lock`](crate::Lock) where that matters.
///
/// # Parts
/// A program that holds several permits can give some of them back: [`Permit::split`] makes two guards of one.
///
/// # The limit
/// Each handle brings a limit, which should be the same in all programs. [`set_limit`](Self::set_limit) stores a limit
/// in Redis that overrides those of the handles.
///
/// # Redis keys
/// - `<prefix>:sem:{<name>}` and `...:leases`, the permits, expire with the longest lease, or 24 h after the last use
///   if a limit is stored.
/// - `...:queue` and `...:tickets`, the waiters, expire 45 min to 1 h after the last heartbeat.
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
    pub(crate) fn new(source: &Arc<HoldSource>, name: &str, limit: u32) -> Self {
        Self { primitive: Primitive::new(source, Kind::Semaphore { limit }, name), limit }
    }

    /// Acquires one permit, and waits until one is free. Set options on the result, then await it.
    pub fn acquire(&self) -> Acquire<Permit> {
        self.acquire_many(1)
    }

    /// Acquires `count` permits at once. Zero is an [`InvalidInput`](crate::ErrorKind::InvalidInput) error. More than
    /// the limit is an [`OverLimit`](crate::ErrorKind::OverLimit) error.
    pub fn acquire_many(&self, count: u32) -> Acquire<Permit> {
        Acquire::new(&self.primitive, "acquire", count)
    }

    /// Acquires one permit without waiting. Resolves to `None` if none is free or another acquisition waits.
    pub fn try_acquire(&self) -> TryAcquire<Permit> {
        self.try_acquire_many(1)
    }

    /// Acquires `count` permits without waiting. Resolves to `None` if fewer are free or another acquisition waits.
    pub fn try_acquire_many(&self, count: u32) -> TryAcquire<Permit> {
        TryAcquire::new(&self.primitive, "try_acquire", count)
    }

    /// Acquires all permits that are free, in one step and without waiting. [`Permit::count`] says how many these are,
    /// at least one. Resolves to `None` if none is free or another acquisition waits.
    ///
    /// A request that is sent again, because its answer was lost, takes no more permits than the first one.
    pub fn try_acquire_all(&self) -> TryAcquire<Permit> {
        TryAcquire::of_all(&self.primitive, "try_acquire_all")
    }

    /// Takes over permits that another program has left with [`Permit::into_handle`]: see
    /// [`Lock::resume`](crate::Lock::resume). Permits have no fencing token.
    ///
    /// # Errors
    /// Those of [`Lock::resume`](crate::Lock::resume).
    ///
    /// # Cancel safety
    /// That of [`Lock::resume`](crate::Lock::resume).
    pub async fn resume(&self, handle: &HoldHandle) -> Result<Permit> {
        resume(&self.primitive, "resume", handle, None).await
    }

    /// Reads the number of free permits. It may have changed when the answer arrives.
    ///
    /// # Errors
    /// Those of [`inspect`](Self::inspect).
    ///
    /// # Cancel safety
    /// Reads only. Dropping the future changes nothing in Redis.
    pub async fn available(&self) -> Result<u32> {
        let inspected = self.primitive.ask("available", |scripts, keys| scripts.inspect(keys, self.limit, 0)).await?;
        self.primitive.context().observe(inspected.now);
        Ok(inspected.limit.saturating_sub(inspected.used))
    }

    /// Reads who holds permits and how many wait. Both are read at the same moment, and may have changed when the
    /// answer arrives.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for an invalid name or limit, and the errors of a server that
    /// does not answer or refuses.
    ///
    /// # Cancel safety
    /// Reads only. Dropping the future changes nothing in Redis.
    pub async fn inspect(&self) -> Result<SemaphoreState> {
        let inspected =
            self.primitive.ask("inspect", |scripts, keys| scripts.inspect(keys, self.limit, MAX_LISTED)).await?;
        self.primitive.context().observe(inspected.now);
        let PermitsInspected { limit, used, holds, waiters, queue, .. } = inspected;
        let ids = holds.iter().map(|hold| &*hold.attempt_id);
        let labels = Labels::read(self.primitive.context(), clients_of(ids, &queue)).await;
        let holder = |PermitHold { attempt_id, units: count, left: remaining, .. }| {
            let client = AttemptId::client_of(&attempt_id);
            PermitState { client, label: labels.get(client), count, remaining }
        };
        let holders = holds.into_iter().map(holder).collect();
        Ok(SemaphoreState { limit, used, holders, waiters, queue: labels.queue(queue) })
    }

    /// Stores a limit in Redis. It overrides the limits of the handles until 24 h after the last use of the semaphore.
    /// No call removes it: set the limit of the handles again.
    ///
    /// A larger limit grants waiters at once. A smaller limit revokes no permits: waiters are granted again once enough
    /// permits are released. Waiters that ask for more than the new limit fail with
    /// [`OverLimit`](crate::ErrorKind::OverLimit).
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for an invalid name or a limit outside of 1 to [`MAX_PERMITS`],
    /// and the errors of a server that does not answer or refuses.
    ///
    /// # Cancel safety
    /// After the future is dropped, the limit may or may not have been stored.
    ///
    /// # Not guaranteed
    /// If a connection is lost during the call, a copy of its request may still arrive within the
    /// [command timeout](crate::ConfigBuilder::command_timeout), and overwrite a limit that was set meanwhile.
    pub async fn set_limit(&self, limit: u32) -> Result<()> {
        const OPERATION: &str = "set_limit";
        let context = self.primitive.context();
        let keys = self.primitive.keys(OPERATION)?;
        check_limit(limit).map_err(|error| error.during(OPERATION).with_name(&keys.name))?;
        // A copy of this call that comes later than its answer could must not overwrite a limit that was set after it.
        let limited =
            self.primitive.ask_in_time(OPERATION, |scripts, keys, not_after| scripts.set_limit(keys, limit, not_after));
        if limited.await? {
            context.promote_later(keys);
        }
        Ok(())
    }

    /// Reports who holds permits, and then the grants, releases and losses: for dashboards and logs. A hold that comes
    /// and goes between two looks is missing: see [`Lock::changes`](crate::Lock::changes). Sends nothing before it is
    /// polled.
    pub fn changes(&self) -> HoldChanges {
        HoldChanges::of_handle(&self.primitive, PrimitiveKind::Semaphore)
    }

    /// Takes permits away from their holders and hands them to the next waiters. Meant for operators.
    ///
    /// Takes at most 1,000 holds: of those that there are when the call begins, those whose leases end first. The
    /// clients of the holders are notified at once ([`Loss::Revoked`](crate::Loss::Revoked)) if they are subscribed.
    /// Until the notification arrives the old holders may still act.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for an invalid name or limit, and the errors of a server that
    /// does not answer or refuses. Some of the holds may have been taken then.
    ///
    /// # Cancel safety
    /// After the future is dropped, any of the holds may or may not have been taken. Nothing is taken from those that
    /// were granted after the call began.
    pub async fn force_release(&self, whose: Whose) -> Result<Revoked> {
        force_release(&self.primitive, self.limit, whose).await
    }

    /// Takes acquisitions that wait out of the queue: see [`Lock::drop_waiters`](crate::Lock::drop_waiters).
    ///
    /// # Errors
    /// Those of [`Lock::drop_waiters`](crate::Lock::drop_waiters).
    ///
    /// # Cancel safety
    /// That of [`Lock::drop_waiters`](crate::Lock::drop_waiters).
    pub async fn drop_waiters(&self, whose: Whose) -> Result<u64> {
        drop_waiters(&self.primitive, whose).await
    }

    /// Asks holders to release, as [`Lock::ask_to_release`](crate::Lock::ask_to_release) does, and returns how many: at
    /// most the first 1,000.
    ///
    /// # Errors
    /// Those of [`Lock::ask_to_release`](crate::Lock::ask_to_release).
    ///
    /// # Cancel safety
    /// That of [`Lock::ask_to_release`](crate::Lock::ask_to_release).
    pub async fn ask_to_release(&self, whose: Whose) -> Result<u64> {
        ask_to_release(&self.primitive, whose).await
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.primitive.name();
        f.debug_struct("Semaphore").field("name", &name).field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// The state of a semaphore, as read by [`Semaphore::inspect`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct SemaphoreState {
    /// The limit in force: the one stored in Redis, or else that of the handle.
    pub limit: u32,
    /// The number of permits that are held. It exceeds the limit if the limit was lowered after they were granted.
    pub used: u32,
    /// The holders: at most 1,000, those whose leases end first.
    pub holders: Vec<PermitState>,
    /// The number of tickets in the queue, counted as in [`LockState::waiters`](crate::LockState::waiters). A
    /// [cohort](Acquire::non_fair) has at most one ticket per member, and often fewer.
    pub waiters: u64,
    /// Those of the first 100 tickets of the queue that have not expired, in its order.
    #[cfg_attr(feature = "serde", serde(default))]
    pub queue: Vec<WaiterState>,
}

/// One holder of permits, as read by [`Semaphore::inspect`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct PermitState {
    /// The [`Client::id`](crate::Client::id) of the holder's client, or `None` if bowline did not write the hold.
    pub client: Option<Uuid>,
    /// The [label](crate::ConfigBuilder::label) of that client, if it has one.
    #[cfg_attr(feature = "serde", serde(default))]
    pub label: Option<String>,
    /// The number of permits that it holds.
    pub count: u32,
    /// The rest of the lease, by the server's clock.
    #[cfg_attr(feature = "serde", serde(with = "crate::duration_text"))]
    pub remaining: Duration,
}
