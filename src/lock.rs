//! The lock.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::acquire::builder::{Acquire, TryAcquire};
use crate::acquire::resume::resume;
use crate::ask::ask_to_release;
use crate::drop_waiters::drop_waiters;
use crate::error::Result;
use crate::handle::Primitive;
use crate::hold::guard::LockGuard;
use crate::hold::hold_handle::HoldHandle;
use crate::hold::owner::HoldSource;
use crate::inspect::{HolderState, Labels, WaiterState, clients_of};
use crate::names::changes::HoldChanges;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::kind::Kind;
use crate::protocol::limits::MAX_LISTED;
use crate::protocol::mutex::reply::Inspected;
use crate::protocol::names::PrimitiveKind;
use crate::protocol::token::Token;
use crate::revoke::{Whose, take_from};

/// A named lock: of all programs that use the same server and prefix, at most one holds it at a time.
///
/// Returned by [`Client::lock`](crate::Client::lock). A handle is cheap to make and to clone, and stores nothing in
/// Redis.
///
/// # Guarantees
/// - At most one [`LockGuard`](crate::LockGuard) per name is valid, under the conditions documented there.
/// - A release hands the lock to the next waiter in the same command. A contended acquisition costs two commands,
///   however many others wait, and no polling. [Non-fair](Acquire::non_fair) acquisitions of one client share commands.
/// - Every waiter is served after a bounded wait. A lost message costs it at most a third of its lease, counted from
///   when it can reach the server. A dead holder costs the rest of that holder's lease.
/// - Waiters whose client is gone are skipped at once, up to 127 tickets of 15 clients. More of them delay the waiters
///   behind them until enough tickets have expired. A ticket expires one lease after its last heartbeat, and after half
///   an hour at most.
/// - Every future can be dropped at any point. Its request is cancelled in the background.
///
/// # Not guaranteed
/// The lock is a lease with a [fencing token](crate::LockGuard::token), not a mutex: see
/// [`LockGuard`](crate::LockGuard).
///
/// # Fairness
/// Acquisitions queue in Redis in the order of arrival across all processes. A waiter whose client is not subscribed
/// when its turn comes is skipped and keeps its place. Each call chooses between [`fair`](Acquire::fair), the default,
/// and [`non_fair`](Acquire::non_fair). Both exclude each other. Non-fair acquisitions of one client share tickets:
/// they cost less, and go before other waiters for a limited number of grants and a limited time.
///
/// # Redis keys
/// - `<prefix>:lock:{<name>}`, the hold, expires with the lease.
/// - `...:queue` and `...:tickets`, the waiters, expire 45 min to 1 h after the last heartbeat.
/// - `...:fence`, the counter of the tokens, expires 65 min after the last grant or after twice the lease, whichever is
///   later.
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
///
/// // Acquires, works and releases, whatever the outcome of the work.
/// orders.lock().run(|guard| async move { println!("holding with token {}", guard.token()) }).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Lock {
    primitive: Primitive,
    /// How long its acquisitions keep their holds.
    retained: Option<Duration>,
}

/// The number of tokens that a grant reserves.
const SPAN: u32 = 1;

impl Lock {
    pub(crate) fn new(source: &Arc<HoldSource>, name: &str) -> Self {
        Self { primitive: Primitive::new(source, Kind::Lock, name), retained: None }
    }

    /// Makes all acquisitions of this handle [retained](Acquire::retained) for that time. [`fair`](Acquire::fair)
    /// undoes this for one acquisition.
    pub fn retained(self, time: Duration) -> Self {
        Self { retained: Some(time), ..self }
    }

    /// Acquires the lock, and waits while others hold it. Set options on the result, then await it.
    pub fn lock(&self) -> Acquire {
        Acquire::new(&self.primitive, "lock", SPAN).retained_for(self.retained)
    }

    /// Acquires the lock without waiting. Resolves to `None` if another acquisition holds the lock or waits for it. A
    /// lock that another client [keeps idle](Acquire::retained) is [waited for](TryAcquire::for_retained).
    pub fn try_lock(&self) -> TryAcquire {
        TryAcquire::new(&self.primitive, "try_lock", SPAN).retained_for(self.retained)
    }

    /// Takes over a hold that another program has left with [`LockGuard::into_handle`](crate::LockGuard::into_handle).
    /// The hold gets a new lease, as long as the one that it had, and a new fencing token. A lease that the watchdog
    /// renewed is renewed by this client.
    ///
    /// Each handle is good for one hold: of several callers, one gets it. A hold that its former client still renews is
    /// taken from it, and that client is told ([`Loss::Gone`](crate::Loss::Gone)) when it renews the next time: give
    /// the token to the storage. The limit of [`hold_at_most`](Acquire::hold_at_most) does not move with it.
    ///
    /// # Errors
    /// - [`Lost`](crate::ErrorKind::Lost): the hold has ended, or it was resumed already.
    /// - [`InvalidInput`](crate::ErrorKind::InvalidInput): the handle is of another name or another kind of primitive.
    ///   Nothing was sent.
    /// - The errors of a server that does not answer or refuses, and
    ///   [`Unacknowledged`](crate::ErrorKind::Unacknowledged). The hold is then still left for another attempt, or it
    ///   was resumed: it is released in the background in that case, and the handle is of no more use.
    ///
    /// # Cancel safety
    /// If the future is dropped, the hold is still left for another attempt, or it was resumed and is released in the
    /// background.
    pub async fn resume(&self, handle: &HoldHandle) -> Result<LockGuard> {
        resume(&self.primitive, "resume", handle, None).await
    }

    /// Reads who holds the lock and how many wait. Both are read at the same moment, and may have changed when the
    /// answer arrives.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for an invalid name, and the errors of a server that does not
    /// answer or refuses.
    ///
    /// # Cancel safety
    /// Reads only. Dropping the future changes nothing in Redis.
    pub async fn inspect(&self) -> Result<LockState> {
        let inspected = self.primitive.ask("inspect", |scripts, keys| scripts.inspect_lock(keys, MAX_LISTED)).await?;
        self.primitive.context().observe(inspected.now);
        let engine = &self.primitive.context().engine;
        let clients = clients_of(inspected.holder_id(), &inspected.queue);
        // Asked now, before the labels are read.
        let id = inspected.holder_id().and_then(AttemptId::parse);
        let is_idle = id.and_then(|id| engine.is_idle(id));
        let labels = Labels::read(self.primitive.context(), clients).await;
        Ok(LockState::of(inspected, &labels, is_idle))
    }

    /// Reports who holds the lock, and then the grants, releases and losses: for dashboards and logs. The name is
    /// looked at when the server says that it has changed, at most once in 10 ms: a hold that comes and goes between
    /// two looks is missing. Sends nothing before it is polled.
    pub fn changes(&self) -> HoldChanges {
        HoldChanges::of_handle(&self.primitive, PrimitiveKind::Lock)
    }

    /// Takes the lock from its holder and hands it to the next waiter. Meant for operators.
    ///
    /// Returns a token that is larger than that of the old holder and smaller than that of the next one. `None`:
    /// nothing was taken, because the lock was free, or its holder released it first. If an answer is lost, the call is
    /// sent again, and then `None` may also mean that the first copy has taken the lock: in this case fence with the
    /// token of the next acquisition.
    ///
    /// The old holder's client is notified at once ([`Loss::Revoked`](crate::Loss::Revoked)) if it is subscribed. Until
    /// the notification arrives the old holder may still act. Give the token to the protected resource, so that the
    /// resource rejects the old holder from now on.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for an invalid name, and the errors of a server that does not
    /// answer or refuses.
    ///
    /// # Cancel safety
    /// After the future is dropped, the lock may or may not have been released. Each call takes the lock from one
    /// holder only: the one that held it when the call began.
    pub async fn force_release(&self) -> Result<Option<Token>> {
        const OPERATION: &str = "force_release";
        // The call names the holder, so that a second copy of it cannot take the lock from the next holder.
        let Some((attempt_id, ..)) =
            self.primitive.ask(OPERATION, |scripts, keys| scripts.inspect_lock(keys, 0)).await?.holder
        else {
            return Ok(None);
        };
        take_from(&self.primitive, OPERATION, &attempt_id).await
    }

    /// Takes acquisitions that wait out of the queue: those of one client, or all. Meant for operators. Returns how
    /// many tickets were removed; the [non-fair](Acquire::non_fair) acquisitions of a client for one name share a
    /// ticket, and fail together. While their client holds the lock, they have none, and stay.
    ///
    /// The acquisitions fail with [`Dropped`](crate::ErrorKind::Dropped) as soon as their client is told. A client that
    /// is not told, because it has no connection at this moment or the server's user may not publish, queues up again
    /// at its next heartbeat. Nothing changes for holders: see [`force_release`](Self::force_release). One call to the
    /// server removes at most 256 tickets. Of more than that, some may be passed over if the queue moves on meanwhile,
    /// and some that have just queued up may be dropped. If an answer was lost, the call was sent again, and the
    /// tickets that the first copy removed are not counted.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for an invalid name, and the errors of a server that does not
    /// answer or refuses.
    ///
    /// # Cancel safety
    /// After the future is dropped, the waiters may or may not have been dropped.
    pub async fn drop_waiters(&self, whose: Whose) -> Result<u64> {
        drop_waiters(&self.primitive, whose).await
    }

    /// Asks the holder to release the lock. Sends a message to the client of the holder, and does not wait for the
    /// release. Returns `false` if the lock is free.
    ///
    /// The holder sees the request by [`LockGuard::asked_to_release`](crate::LockGuard::asked_to_release), and decides
    /// what to do. A client that [keeps the lock idle](Acquire::retained) releases it. The message is lost if the
    /// client has no connection at this moment; a second request does no harm. To wait for the lock and to take it by
    /// force after a time, use [`Acquire::force_after`].
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for an invalid name, and the errors of a server that does not
    /// answer or refuses.
    ///
    /// # Cancel safety
    /// After the future is dropped, the holder may or may not have been asked.
    pub async fn ask_to_release(&self) -> Result<bool> {
        Ok(ask_to_release(&self.primitive, Whose::Everybody).await? > 0)
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").field("name", &self.primitive.name()).finish_non_exhaustive()
    }
}

/// The state of a lock, as read by [`Lock::inspect`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct LockState {
    /// The holder, or `None` if the lock is free.
    pub holder: Option<HolderState>,
    /// The number of tickets in the queue, without expired ones. Each fair acquisition that waits has one ticket. A
    /// [cohort](Acquire::non_fair) has one ticket while all its members wait, and none while one of them holds the
    /// lock. [`Stats::waiting`](crate::Stats::waiting) counts the acquisitions that wait in a client, members of
    /// cohorts included.
    pub waiters: u64,
    /// Those of the first 100 tickets of the queue that have not expired, in its order.
    #[cfg_attr(feature = "serde", serde(default))]
    pub queue: Vec<WaiterState>,
}

impl LockState {
    /// `idle`: whether the holder keeps the lock idle.
    pub(crate) fn of(Inspected { holder, waiters, queue, .. }: Inspected, labels: &Labels, idle: Option<bool>) -> Self {
        let holder = holder.map(|(attempt_id, token, remaining)| {
            let (client, remaining) = (AttemptId::client_of(&attempt_id), remaining.unwrap_or_default());
            HolderState { client, label: labels.get(client), token, remaining, idle }
        });
        Self { holder, waiters, queue: labels.queue(queue) }
    }
}
