//! The lock.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::acquire::builder::{Acquire, TryAcquire};
use crate::context::Context;
use crate::error::Result;
use crate::guard::LockGuard;
use crate::handle::Primitive;
use crate::owned::Owned;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::kind::Kind;
use crate::protocol::token::Token;
use crate::reentry::Reentry;

/// A named lock that programs on many machines can hold one at a time. Made by [`Client::lock`](crate::Client::lock);
/// cheap to make and to clone, and nothing in Redis until it is acquired.
///
/// # Guarantees
/// - At most one valid [`LockGuard`] per name, by the terms stated there.
/// - A release hands the lock to the next waiter inside the same command: a contended acquisition costs two commands
///   of this client, whoever waits, and no polling. [Non-fair](Acquire::non_fair) ones of one client share commands.
/// - A waiter whose message was lost, whose predecessor died or whose server restarted is served after a bounded wait:
///   at most a third of its lease after it can reach the server again, or when the lease in its way ends. Dead waiters are
///   passed over at once, up to 127 tickets of 15 clients; more hold up those behind them until they have expired: a lease
///   after their last sign of life, half an hour at most.
/// - Any future may be dropped at any point. What it had in Redis is cancelled in the background.
///
/// # Not guaranteed
/// The lock is a lease with a [fencing token](LockGuard::token), not a mutex: see [`LockGuard`].
///
/// # Fairness
/// Acquisitions queue in Redis and are served first come, first served across all processes, except those whose client
/// does not listen at that moment; these keep their place. The choice between [`fair`](Acquire::fair) and
/// [`non_fair`](Acquire::non_fair) is made at each call; both exclude each other. Non-fair acquisitions of one client
/// share tickets: they cost less, and pass others by a bounded number and time.
///
/// # Redis keys
/// `<prefix>:lock:{<name>}` for the length of the lease, `...:queue` and `...:tickets` while somebody waits (at most
/// 1 h after the last sign of life), and `...:fence`, the counter of the tokens, for 1 h after the last grant, or
/// twice its lease.
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
/// // All in one: released on every path.
/// orders.lock().run(|guard| async move { println!("holding with token {}", guard.token()) }).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Lock {
    primitive: Primitive,
}

/// A grant reserves as many tokens.
const SPAN: u32 = 1;

impl Lock {
    pub(crate) fn new(context: Arc<Context>, reentry: Arc<Reentry<Owned>>, name: &str) -> Self {
        Self { primitive: Primitive::new(context, reentry, Kind::Lock, name) }
    }

    /// Acquires the lock, waiting for it if need be. Await the result, or set options first.
    pub fn lock(&self) -> Acquire {
        Acquire::new(&self.primitive, "lock", SPAN, LockGuard::new)
    }

    /// Acquires the lock if it is free and nobody waits for it; `None` if not.
    pub fn try_lock(&self) -> TryAcquire {
        TryAcquire::new(&self.primitive, "try_lock", SPAN, LockGuard::new)
    }

    /// Who holds the lock and how many wait, as one consistent look. It may be outdated when it arrives.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a bad name; the server's, if it does not answer.
    ///
    /// # Cancel safety
    /// Changes nothing.
    pub async fn inspect(&self) -> Result<LockState> {
        let inspected = self.primitive.ask("inspect", |scripts, keys| scripts.inspect_lock(keys)).await?;
        self.primitive.context.observe(inspected.now);
        let holder = inspected.holder.map(|(attempt_id, token, remaining)| HolderState {
            client: AttemptId::client_of(&attempt_id),
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
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a bad name; the server's, if it does not answer.
    ///
    /// # Cancel safety
    /// Dropped, it may have released or not. Called again it never takes the lock from somebody who was given it
    /// meanwhile by the same call.
    pub async fn force_release(&self) -> Result<Option<Token>> {
        const OPERATION: &str = "force_release";
        let Primitive { context, .. } = &self.primitive;
        // The holder is named: a second copy of the call must not take the lock from the next one.
        let Some((attempt_id, ..)) =
            self.primitive.ask(OPERATION, |scripts, keys| scripts.inspect_lock(keys)).await?.holder
        else {
            return Ok(None);
        };
        let released =
            self.primitive.ask(OPERATION, |scripts, keys| scripts.force_release_lock(keys, &attempt_id)).await?;
        context.observe(released.now);
        if released.more {
            context.engine.promote_later(self.primitive.keys(OPERATION)?, context.now(), context.config.lease);
        }
        Ok(released.token)
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").field("name", &self.primitive.name()).finish_non_exhaustive()
    }
}

/// What [`Lock::inspect`] saw.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockState {
    /// Who holds the lock, if anybody does.
    pub holder: Option<HolderState>,
    /// How many tickets wait in Redis, those left out whose sign of life has expired. A fair acquisition that waits is one
    /// ticket. Those that stand in a client's [line](Acquire::non_fair) are not counted one by one: the line is one ticket
    /// while it waits, and none while one of it holds the lock. How many wait in its own lines, a client says in
    /// [`Stats::waiting`](crate::Stats::waiting).
    pub waiters: u64,
}

/// The holder that [`Lock::inspect`] saw.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HolderState {
    /// The [`Client::id`](crate::Client::id) of its client; `None` if the key was not written by bowline.
    pub client: Option<Uuid>,
    /// Its fencing token; that of the first guard, of a lock that was handed on among the
    /// [non-fair](Acquire::non_fair) acquisitions of its client.
    pub token: Token,
    /// What is left of its lease, by the server's clock.
    pub remaining: Duration,
}
