//! Locks that Java programs share by Redisson: their format in Redis is Redisson's.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::acquire::builder::{Acquire, TryAcquire};
use crate::driver::retry::Retry;
use crate::error::Result;
use crate::handle::Primitive;
use crate::hold::guard::{RedissonFencedGuard, RedissonGuard};
use crate::hold::owner::HoldSource;
use crate::protocol::dispatch::Failure;
use crate::protocol::key::SharedCounter;
use crate::protocol::kind::Kind;
use crate::protocol::limits::WRITE;
use crate::protocol::timed_permits;

pub use acquire::RedissonAcquire;
pub use latch::RedissonCountDownLatch;
pub use permit_semaphore::{RedissonPermitSemaphore, RedissonPermitState, RedissonPermitsState};
pub use permits::RedissonPermits;
pub use semaphore::RedissonSemaphore;
pub use state::{RedissonLockState, RedissonOwner};

mod acquire;
mod changed;
mod latch;
mod permit_semaphore;
mod permits;
mod semaphore;
mod state;

/// The locks of Java programs that use [Redisson](https://redisson.pro), as returned by
/// [`Client::redisson`](crate::Client::redisson). Cheap to clone.
///
/// A lock by its name is one lock for both sides, and not the [`Lock`](crate::Lock) of that name. [docs/java.md] says
/// what is weaker than there, which settings of Redisson must agree, and how to move a service without a gap.
///
/// [docs/java.md]: https://docs.rs/crate/bowline/latest/source/docs/java.md
#[derive(Clone)]
pub struct Redisson {
    source: Arc<HoldSource>,
    mapper: Option<Arc<NameMapper>>,
}

type NameMapper = dyn Fn(&str) -> String + Send + Sync;

impl Redisson {
    pub(crate) fn new(source: &Arc<HoldSource>) -> Self {
        Self { source: source.clone(), mapper: None }
    }

    /// Maps all names by a function, as the `NameMapper` of the Java programs does. By default, the name is the key.
    /// The client's [prefix](crate::ConfigBuilder::prefix) is never added.
    ///
    /// # Examples
    /// ```no_run
    /// # fn example(client: bowline::Client) {
    /// let java = client.redisson().map_names(|name| format!("shop:{name}"));
    /// let lock = java.lock("orders:42"); // the key is shop:orders:42
    /// # }
    /// ```
    pub fn map_names(self, mapper: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self { mapper: Some(Arc::new(mapper)), ..self }
    }

    /// Returns the lock that Java programs get by `redisson.getLock(name)`. A name is any text of 1 to 512 bytes. If
    /// the key of the name has the form of bowline's own keys (`<prefix>:<word>:{`) or of the counter of a fenced lock,
    /// the name is invalid. An invalid name is an error of the first operation. Sends nothing.
    pub fn lock(&self, name: &str) -> RedissonLock {
        RedissonLock { primitive: self.primitive(name, Kind::Redisson { fenced: false }) }
    }

    /// Returns the lock that Java programs get by `redisson.getFencedLock(name)`. Names are those of
    /// [`lock`](Self::lock). Sends nothing.
    ///
    /// A Java program may use a name both for a lock and for a fenced lock, which exclude each other. Only holds of the
    /// fenced lock have tokens.
    pub fn fenced_lock(&self, name: &str) -> RedissonFencedLock {
        RedissonFencedLock { primitive: self.primitive(name, Kind::Redisson { fenced: true }) }
    }

    /// Returns the latch that Java programs get by `redisson.getCountDownLatch(name)`. Names are those of
    /// [`lock`](Self::lock), and in a cluster those without a `}`. Sends nothing.
    pub fn count_down_latch(&self, name: &str) -> RedissonCountDownLatch {
        RedissonCountDownLatch::new(self.counter(name, SharedCounter::latch))
    }

    /// Returns the semaphore that Java programs get by `redisson.getSemaphore(name)`. Names are those of
    /// [`lock`](Self::lock). Sends nothing.
    pub fn semaphore(&self, name: &str) -> RedissonSemaphore {
        RedissonSemaphore::new(self.counter(name, SharedCounter::semaphore))
    }

    /// Returns the semaphore that Java programs get by `redisson.getPermitExpirableSemaphore(name)`, whose permits have
    /// ids and leases. Names are those of [`lock`](Self::lock). Sends nothing.
    pub fn permit_semaphore(&self, name: &str) -> RedissonPermitSemaphore {
        let keep = timed_permits::keep(self.source.context.config.command_timeout);
        let keep = u64::try_from(keep.as_millis()).unwrap_or(u64::MAX);
        let permits = self.primitive(name, Kind::TimedPermit { keep });
        RedissonPermitSemaphore::new(permits, self.counter(name, SharedCounter::semaphore))
    }

    fn primitive(&self, name: &str, kind: Kind) -> Primitive {
        Primitive::redisson(&self.source, name, &self.mapped(name), kind)
    }

    fn counter(&self, name: &str, new: fn(&str, &str, &str) -> Result<SharedCounter>) -> Primitive<SharedCounter> {
        Primitive::counter(&self.source, new(&self.source.context.config.prefix, name, &self.mapped(name)))
    }

    fn mapped<'a>(&self, name: &'a str) -> Cow<'a, str> {
        self.mapper.as_ref().map_or(Cow::Borrowed(name), |mapper| mapper(name).into())
    }
}

impl fmt::Debug for Redisson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redisson").field("maps_names", &self.mapper.is_some()).finish_non_exhaustive()
    }
}

/// A lock that Java programs hold as an `RLock`: of all of them and all clients of bowline, at most one holds it at a
/// time.
///
/// Returned by [`Redisson::lock`]. A handle is cheap to make and to clone, and stores nothing in Redis.
///
/// # Guarantees
/// - At most one [`RedissonGuard`](crate::RedissonGuard) per name is valid, and no Java thread holds the lock
///   meanwhile, under the conditions documented for [`LockGuard`](crate::LockGuard) and if the settings agree.
/// - A release wakes all that wait, in both languages, by one message. If the message is lost, they ask when the lease
///   that was in the way has passed.
/// - Every future can be dropped at any point. Its request is cancelled in the background.
///
/// # Not guaranteed
/// - There is no order, and no bound of the wait: all that are woken race for the lock.
/// - There is no fencing token, so storage cannot tell a holder that is late. [`RedissonFencedLock`] has one.
/// - A hold with a [fixed lease](Acquire::expires_after) that Java takes by `forceUnlock` stays valid here until its
///   lease ends or it is released. A renewed one is lost at its next renewal.
/// - Re-entry belongs to the handle: a [`Holder`](crate::Holder) that holds [`Redisson::lock`] waits for itself if it
///   asks for the [fenced lock](Redisson::fenced_lock) of the same name.
///
/// # Fairness
/// Acquisitions of one client form a [cohort](Acquire::non_fair) if they have the client's own renewed lease: one of
/// them asks, and a release hands the hold to the next one without a command, at most 32 times and for at most
/// [`handoff_time`](crate::ConfigBuilder::handoff_time). Then the lock is released, and all race again.
///
/// # Redis keys
/// `<name>`, the hold, expires with the lease.
///
/// # Examples
/// ```no_run
/// # use std::time::Duration;
/// # async fn example(client: bowline::Client) -> bowline::Result<()> {
/// let orders = client.redisson().lock("orders:42");
/// let guard = orders.lock().timeout(Duration::from_secs(2)).await?;
/// guard.protect(async { /* stops if the lease is lost */ }).await?;
/// guard.release().await
/// # }
/// ```
#[derive(Clone)]
pub struct RedissonLock {
    primitive: Primitive,
}

/// A lock that Java programs hold as an `RFencedLock`: a [`RedissonLock`] whose holds have a fencing token.
///
/// Returned by [`Redisson::fenced_lock`]. Tokens grow over both languages, for as long as Redis keeps their counter. A
/// failover that loses the last writes may give a token twice.
///
/// # Redis keys
/// - `<name>`, the hold, expires with the lease.
/// - `redisson_lock_token:{<name>}`, the counter of the tokens, never expires, as Redisson's does not.
///
/// # Examples
/// ```no_run
/// # async fn example(client: bowline::Client) -> bowline::Result<()> {
/// let guard = client.redisson().fenced_lock("orders:42").lock().await?;
/// println!("holding with token {}", guard.token());
/// guard.release().await
/// # }
/// ```
#[derive(Clone)]
pub struct RedissonFencedLock {
    primitive: Primitive,
}

macro_rules! locks {
    ($($lock:ident: $guard:ident, $amount:expr;)+) => {$(
        impl $lock {
            /// Acquires the lock, and waits while others hold it. Set options on the result, then await it.
            ///
            /// There is no queue: [`fair`](Acquire::fair), [`max_waiters`](Acquire::max_waiters) and
            /// [`retained`](Acquire::retained) are [`InvalidInput`](crate::ErrorKind::InvalidInput) errors. In a
            /// cluster, so is a name that Redisson cannot use there either: one with braces, unless some text stands
            /// between its first `{` and the next `}`. The errors of a connection that cannot subscribe to the channel
            /// of the lock are those of the acquisition. The first acquisition of a client tries whether its user may
            /// publish there.
            ///
            /// On one server and behind sentinels, a client has one connection more for each name that it waits for.
            pub fn lock(&self) -> Acquire<$guard> {
                Acquire::<$guard>::new(&self.primitive, "lock", $amount).non_fair()
            }

            /// Acquires the lock without waiting. Resolves to `None` if another acquisition holds the lock, in this or
            /// another program.
            pub fn try_lock(&self) -> TryAcquire<$guard> {
                TryAcquire::<$guard>::new(&self.primitive, "try_lock", $amount).non_fair()
            }

            /// Reads who holds the lock. Who waits is not known. It may have changed when the answer arrives.
            ///
            /// # Errors
            /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for an invalid name, and the errors of a server that
            /// does not answer or refuses.
            ///
            /// # Cancel safety
            /// Reads only. Dropping the future changes nothing in Redis.
            pub async fn inspect(&self) -> Result<RedissonLockState> {
                inspect(&self.primitive).await
            }

            /// Takes the lock from its holder and wakes those who wait, as `forceUnlock` does. `false`: the holder that
            /// was found had it no more, or nobody held it. Meant for operators.
            ///
            /// The old holder is not told. A guard of bowline is [lost](crate::Loss::Gone) at its next renewal, a
            /// third of its lease later at the latest. A Java program finds out when it unlocks.
            ///
            /// # Errors
            /// - [`InvalidInput`](crate::ErrorKind::InvalidInput) for an invalid name.
            /// - [`WrongType`](crate::ErrorKind::WrongType): the name is that of something else, such as a read-write
            ///   lock of Redisson.
            /// - [`Unavailable`](crate::ErrorKind::Unavailable): the server gave no answer, and the lock may have been
            ///   released. The request is not sent again, because a thread of Java has the same owner id in each of
            ///   its holds, and a copy could end a later one.
            ///
            /// # Cancel safety
            /// After the future is dropped, the lock may or may not have been released. The call takes the lock from
            /// one owner only: the one that held it when the call began. If that is a thread of Java which has
            /// released the lock and taken it again meanwhile, it loses the later hold.
            pub async fn force_release(&self) -> Result<bool> {
                force_release(&self.primitive).await
            }
        }

        impl fmt::Debug for $lock {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($lock)).field("name", &self.primitive.name()).finish_non_exhaustive()
            }
        }
    )+};
}

locks! {
    RedissonLock: RedissonGuard, WRITE;
    RedissonFencedLock: RedissonFencedGuard, 1;
}

async fn inspect(primitive: &Primitive) -> Result<RedissonLockState> {
    let inspected = primitive.ask("inspect", |scripts, keys| scripts.inspect_shared(keys)).await?;
    primitive.context().observe(inspected.now);
    let owner = |(owner, entries, remaining)| RedissonOwner { owner, entries, remaining };
    Ok(RedissonLockState { holder: inspected.owner.map(owner) })
}

async fn force_release(primitive: &Primitive) -> Result<bool> {
    const OPERATION: &str = "force_release";
    let inspected = primitive.ask(OPERATION, |scripts, keys| scripts.inspect_shared(keys)).await?;
    let Some((owner, ..)) = inspected.owner else { return Ok(false) };
    let owner = &*owner;
    // A thread of Java has one name for all of its holds, so a copy of the call could end a later one.
    let stop = |retry: &Retry<'_>, failure: Failure| match failure.may_be_done() {
        true => Err(retry.error(failure).with_reason("the lock may have been released")),
        false => Ok(failure),
    };
    primitive
        .ask_in_time_unless(OPERATION, stop, |scripts, keys, not_after| {
            scripts.force_release_shared(keys, owner, not_after)
        })
        .await
}
