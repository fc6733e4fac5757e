//! The semaphore that Java programs share.

use std::fmt;

#[cfg(doc)]
use crate::error::ErrorKind;
use crate::error::Result;
use crate::handle::Primitive;
use crate::protocol::key::SharedCounter;
use crate::protocol::shared_counter::Given;
use crate::redisson::acquire::{RedissonAcquire, check, check_change, take};
use crate::redisson::changed::{changed, give};
use crate::redisson::permits::RedissonPermits;

/// A semaphore that Java programs use as an `RSemaphore`: a named number of permits that both sides take and give back.
///
/// Returned by [`Redisson::semaphore`](crate::Redisson::semaphore). A handle is cheap to make and to clone, and stores
/// nothing in Redis.
///
/// # Guarantees
/// - A permit is taken by one acquisition at a time, of all in both languages, as long as nobody releases what they
///   have not taken.
/// - Each call of bowline takes or gives once, even if its request is sent several times.
/// - An acquisition whose future is dropped, or that fails, gives back in the background what it may have taken, if the
///   server can be reached within one [`lease`](crate::ConfigBuilder::lease) of the client and its
///   [`retry_timeout`](crate::ConfigBuilder::retry_timeout), counted from the request that took it. A future that is
///   not polled for longer, and then dropped, gives nothing back.
/// - A release wakes those who wait, in both languages, by a message. If the message is lost, a waiter of bowline asks
///   again after a third of the client's lease at most.
///
/// # Not guaranteed
/// - **Permits have no lease and no holder.** The permits of a program that dies, or whose client is closed while it
///   has some or is about to take some, are lost until somebody [releases](Self::release) as many. bowline's own
///   [`Semaphore`](crate::Semaphore) does not lose permits.
/// - There is no order, and no bound of the wait: all that wait ask, and the first request that fits takes the permits.
///   An acquisition of many may wait for as long as others take few.
/// - A waiter of Java has no reason to ask but a message. If a message is lost, or wakes a thread that wants more than
///   there is, it waits for the next one.
/// - A failover may lose the last writes. Permits that one of them took are given to somebody else, too; permits that
///   one gave back are lost.
/// - The [prefix](crate::ConfigBuilder::prefix) is never added, replicas do not
///   [acknowledge](crate::ConfigBuilder::acknowledged_by) permits, and the statistics of the client do not count them.
///
/// # Redis keys
/// - `<name>`, the number of free permits, never expires.
/// - `<prefix>:call:{<name>}:<id>` recognises late copies of a request. It expires one `retry_timeout` and one
///   [`command_timeout`](crate::ConfigBuilder::command_timeout) after the call. A call that takes permits is remembered
///   for one lease and one `retry_timeout` more, and the release of a [`RedissonPermits`] for one lease more.
///
/// # Examples
/// ```no_run
/// # use std::time::Duration;
/// # async fn example(client: bowline::Client) -> bowline::Result<()> {
/// let printers = client.redisson().semaphore("printers");
/// printers.try_set_permits(4).await?;
///
/// let permits = printers.acquire_many(2).timeout(Duration::from_secs(5)).await?;
/// // Work with two printers.
/// permits.release().await
/// # }
/// ```
#[derive(Clone)]
pub struct RedissonSemaphore {
    primitive: Primitive<SharedCounter>,
}

impl RedissonSemaphore {
    pub(super) fn new(primitive: Primitive<SharedCounter>) -> Self {
        Self { primitive }
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
        check(&self.primitive, OPERATION, permits)?;
        changed(
            &self.primitive,
            OPERATION,
            |_| {},
            |scripts, counter, copy| Box::pin(async move { scripts.set_shared(counter, copy, permits).await }),
        )
        .await
    }

    /// Takes one permit, and waits until it is free.
    pub fn acquire(&self) -> RedissonAcquire {
        self.acquire_many(1)
    }

    /// Takes so many permits at once, and waits until they are free. Set a timeout on the result if needed, then await
    /// it.
    ///
    /// The errors of a connection that cannot subscribe to the channel of the semaphore are those of the acquisition.
    /// The first acquisition of a client tries whether its user may publish there. On one server and behind sentinels,
    /// a client has one connection more for each name that it waits for. After each message, each waiting acquisition
    /// sends a request.
    pub fn acquire_many(&self, permits: u32) -> RedissonAcquire {
        RedissonAcquire::new(&self.primitive, permits)
    }

    /// Takes one permit, or resolves to `None` if none is free.
    ///
    /// # Errors
    /// Those of [`try_acquire_many`](Self::try_acquire_many).
    ///
    /// # Cancel safety
    /// If the future is dropped, what it may have taken is given back in the background.
    pub async fn try_acquire(&self) -> Result<Option<RedissonPermits>> {
        self.try_acquire_many(1).await
    }

    /// Takes so many permits, or resolves to `None` if fewer are free.
    ///
    /// # Errors
    /// Those of [`try_set_permits`](Self::try_set_permits). What may have been taken is given back in the background.
    ///
    /// # Cancel safety
    /// If the future is dropped, what it may have taken is given back in the background.
    pub async fn try_acquire_many(&self, permits: u32) -> Result<Option<RedissonPermits>> {
        const OPERATION: &str = "try_acquire";
        check(&self.primitive, OPERATION, permits)?;
        take(&self.primitive, OPERATION, permits, |_| {}).await
    }

    /// Takes all permits that are free, as `drainPermits` does, or resolves to `None` if none is. It takes
    /// 2,147,483,647 at most.
    /// [Forget](RedissonPermits::forget) them to leave the semaphore empty.
    ///
    /// # Errors
    /// Those of [`try_acquire_many`](Self::try_acquire_many).
    ///
    /// # Cancel safety
    /// If the future is dropped, what it may have taken is given back in the background.
    pub async fn drain(&self) -> Result<Option<RedissonPermits>> {
        take(&self.primitive, "drain", 0, |_| {}).await
    }

    /// Gives so many permits, which the caller has taken and [forgotten](RedissonPermits::forget), or that a program
    /// has lost. Nobody checks that they were taken.
    ///
    /// # Errors
    /// Those of [`try_set_permits`](Self::try_set_permits).
    ///
    /// # Cancel safety
    /// After the future is dropped, the permits may or may not have been given.
    pub async fn release(&self, permits: u32) -> Result<()> {
        const OPERATION: &str = "release";
        check(&self.primitive, OPERATION, permits)?;
        give(&self.primitive, OPERATION, Given::Permits(permits.into())).await
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
        check_change(&self.primitive, OPERATION, change)?;
        give(&self.primitive, OPERATION, Given::Permits(change.into())).await
    }

    /// Reads how many permits are free. It may have changed when the answer arrives.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for an invalid name, [`WrongType`](ErrorKind::WrongType) if it is that
    /// of something else, and the errors of a server that does not answer or refuses.
    ///
    /// # Cancel safety
    /// Reads only. Dropping the future changes nothing in Redis.
    pub async fn available(&self) -> Result<u64> {
        let (count, now) = self.primitive.ask("available", |scripts, counter| scripts.shared_count(counter)).await?;
        self.primitive.context().observe(now);
        Ok(count)
    }
}

impl fmt::Debug for RedissonSemaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedissonSemaphore").field("name", &self.primitive.name()).finish_non_exhaustive()
    }
}
