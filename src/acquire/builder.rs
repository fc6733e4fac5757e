//! The builders of an acquisition: options first, then `.await`, or `.block()` in the blocking API.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use crate::error::{Error, ErrorKind, Result};
use crate::handle::Primitive;
use crate::hold::guard::{Held, LockGuard, Reentrant};
use crate::holder::Holder;
use crate::runtime::Executor;

pub(crate) mod choices;
mod guards;
pub(crate) mod obtain;
mod shared;
mod try_acquire;

use choices::{Options, Part};
use shared::builder;
pub use try_acquire::TryAcquire;

/// An acquisition that waits until it is granted. `G` is the guard that it resolves to.
///
/// Returned by [`Lock::lock`](crate::Lock::lock), [`RwLock::read`](crate::RwLock::read),
/// [`RwLock::upgradable_read`](crate::RwLock::upgradable_read), [`RwLock::write`](crate::RwLock::write),
/// [`Semaphore::acquire`](crate::Semaphore::acquire) and [`RedLock::lock`](crate::RedLock::lock). Nothing is sent
/// before it is awaited. The [blocking API](crate::blocking::Acquire) uses the same builder and calls `block` instead.
///
/// # Errors
/// - [`TimedOut`](ErrorKind::TimedOut): the [`timeout`](Self::timeout) has passed.
/// - [`QueueFull`](ErrorKind::QueueFull): [`max_waiters`](Self::max_waiters) others wait already.
/// - [`InvalidInput`](ErrorKind::InvalidInput): the name or an option is invalid. Nothing was sent.
/// - [`Dropped`](ErrorKind::Dropped): an operator has [taken it out of the queue](crate::Lock::drop_waiters).
/// - [`OverLimit`](ErrorKind::OverLimit): the semaphore has fewer permits than requested.
/// - [`WouldDeadlock`](ErrorKind::WouldDeadlock): the holder already reads and asks to write, or it holds the primitive
///   and the acquisition [denies re-entry](Self::deny_reentry).
/// - [`Unavailable`](ErrorKind::Unavailable), [`Refused`](ErrorKind::Refused): the server gave no usable answer for the
///   client's [`retry_timeout`](crate::ConfigBuilder::retry_timeout). `Unavailable` also means that three grants in a
///   row arrived after their lease had expired.
/// - [`Unacknowledged`](ErrorKind::Unacknowledged): fewer replicas than [asked for](Self::acknowledged_by) have the
///   grant in time. It is released in the background.
/// - [`Denied`](ErrorKind::Denied), [`Certificate`](ErrorKind::Certificate), [`WrongType`](ErrorKind::WrongType),
///   [`Unsupported`](ErrorKind::Unsupported), [`Protocol`](ErrorKind::Protocol): returned at once, without a retry.
/// - [`Closed`](ErrorKind::Closed): the client is closed, or was closed during the wait.
///
/// # Cancel safety
/// Dropping the future at any point cancels the acquisition in the background, and the next waiter is served. If the
/// server is unreachable, a ticket or a hold can remain in Redis for at most one lease.
///
/// # Examples
/// An acquisition borrows nothing. It can be stored, spawned as a task and joined with others.
/// ```
/// # #[cfg(all(feature = "tokio", feature = "embedded"))]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// use std::future::IntoFuture;
///
/// use futures::future::try_join_all;
///
/// # let client = bowline::embedded::Server::new().client(bowline::tokio::Tokio::current()?).await?;
/// let kept = client.lock("orders:1").lock().timeout(Duration::from_secs(2));
/// let guard = kept.await?;
///
/// let task = tokio::spawn(client.lock("orders:2").lock().into_future());
/// let guards = try_join_all(["a", "b", "c"].map(|name| client.lock(name).lock().into_future())).await?;
/// # assert!(task.await??.is_valid() && guard.is_valid() && guards.len() == 3);
/// # Ok(()) }
/// # #[cfg(not(all(feature = "tokio", feature = "embedded")))]
/// # fn main() {}
/// ```
#[must_use = "an acquisition does nothing unless awaited"]
pub struct Acquire<G = LockGuard> {
    pub(super) options: Options,
    guard: PhantomData<G>,
}

impl<G> Acquire<G> {
    /// Waits in the order of arrival across all processes. This is the default.
    pub fn fair(mut self) -> Self {
        self.options.choices.non_fair = false;
        self.options.choices.retained = None;
        self
    }

    /// Prefers throughput to the order between processes.
    ///
    /// Non-fair acquisitions of one client form a *cohort* if they can share a grant: those of one
    /// [`Lock`](crate::Lock), the writers of one [`RwLock`](crate::RwLock), and those that ask a
    /// [`Semaphore`](crate::Semaphore) for the same number of permits through handles with the same limit. A cohort
    /// of a lock or of writers waits behind one ticket, that of a semaphore behind at most one for each waiting member.
    /// A release hands the hold to the next member of the cohort without a command. If the primitive has tokens, every
    /// member gets a larger one.
    ///
    /// Only acquisitions with the client's own renewed lease join a cohort. All others queue up as [`fair`](Self::fair)
    /// ones.
    ///
    /// # Guaranteed
    /// - The member that has waited longest in its cohort is next. A semaphore may answer requests that are already
    ///   sent in another order.
    /// - The first hand-off budget serves at most 32 members, and the last of them at most
    ///   [`handoff_time`](crate::ConfigBuilder::handoff_time) (default 100 ms) after the first. The cohort then queues
    ///   up again behind the other waiters.
    /// - The cohort of a [`Lock`](crate::Lock) or of writers that was granted without waiting asks for its next budget
    ///   when half of the present one is used, and gets the budget only if no one else waits. The cohort of a semaphore
    ///   asks when half of the hand-offs of a budget are used. A cohort that is alone therefore seldom waits for Redis.
    ///   If a budget is used up before the next one is there, the one after that is twice as large, up to 512 members.
    /// - At most two budgets of a lock or of writers go before a waiter outside the cohort. For each
    ///   permit of a semaphore, at most three budgets go before it: the present one, the next one if it was granted
    ///   already, and the budget of a ticket that the cohort queued earlier.
    /// - Only a valid hold is handed off. After a loss, or with less than half of the lease left, the next member asks
    ///   Redis.
    /// - While members wait for permits, the cohort always asks for more, so it also gets permits that other clients
    ///   release.
    ///
    /// # Not guaranteed
    /// - Order between a cohort and acquisitions outside it, including those of the same client: fair ones, tries,
    ///   readers, and those with a [lease](Self::lease) of their own, a [fixed lease](Self::expires_after) or a
    ///   [limit](Self::hold_at_most).
    /// - Progress while the next member does not run. If its future is neither polled nor dropped when its turn comes,
    ///   the cohort may stall, and the hold stays taken until the lease expires.
    pub fn non_fair(mut self) -> Self {
        self.options.choices.non_fair = true;
        self
    }

    /// Limits the wait. By default an acquisition waits for as long as others hold what it asks for.
    ///
    /// Zero is an [`InvalidInput`](ErrorKind::InvalidInput) error: use the `try_` method instead.
    /// [`TimedOut`](ErrorKind::TimedOut) is returned without waiting for the server. The ticket is cancelled in the
    /// background and can remain in Redis for some milliseconds.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.choices.timeout = Some(timeout);
        self
    }

    /// Returns [`QueueFull`](ErrorKind::QueueFull) instead of waiting behind `limit` or more others. By default the
    /// queue is unlimited.
    ///
    /// Waiters are counted when the acquisition starts to wait: those in Redis, or those in the client's own
    /// [cohort](Self::non_fair). A member of a cohort that asks the server later counts those in Redis then. A cohort
    /// that queues up again after its turn is not checked again. Zero is an
    /// [`InvalidInput`](ErrorKind::InvalidInput) error: use the `try_` method instead.
    pub fn max_waiters(mut self, limit: u32) -> Self {
        self.options.choices.max_waiters = Some(limit);
        self
    }

    /// The primitives to acquire, without the options.
    pub(crate) fn parts(&self) -> &[Part] {
        self.options.parts()
    }
}

builder!(Acquire);

impl<G: Reentrant> Acquire<G> {
    /// Acquires for `holder`. If `holder` already holds the primitive through this client, the acquisition re-enters
    /// that hold. The default is the holder of the innermost [`Holder::scope`], if there is one.
    pub fn holder(self, holder: &Holder) -> Self {
        self.held_by(holder)
    }

    /// Denies re-entry. If the holder already holds the primitive through this client, the acquisition fails at once
    /// with [`WouldDeadlock`](ErrorKind::WouldDeadlock), and nothing is sent. By default it re-enters that hold.
    ///
    /// Meant for sections that must not run inside themselves. While another task acquires for the same holder, the
    /// acquisition waits for the outcome. A hold that is lost counts as none. A [`MultiLock`](crate::MultiLock) fails
    /// if the holder holds any of its names, and releases those that it has acquired until then.
    ///
    /// An acquisition without a holder is not affected. It waits for the hold, even if its own task has it.
    pub fn deny_reentry(self) -> Self {
        self.denying_reentry()
    }
}

impl<G: Held> Acquire<G> {
    pub(crate) fn acquired(self) -> impl Future<Output = Result<G>> + Send {
        let operation = self.options.operation;
        // An acquisition that waits is never answered "busy".
        let never = move || Error::new(ErrorKind::Protocol, operation);
        G::acquire(self.options, true, move |acquired| acquired.ok_or_else(never))
    }
}

impl<G: Held> IntoFuture for Acquire<G> {
    type Output = Result<G>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.acquired())
    }
}
