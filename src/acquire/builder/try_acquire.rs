//! The builder of an attempt that does not wait for other holders.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use super::choices::{Options, Part};
use super::shared::builder;
use crate::error::Result;
use crate::handle::Primitive;
use crate::hold::guard::{Held, LockGuard, Reentrant};
use crate::holder::Holder;
use crate::protocol::attempt_id::AttemptId;
use crate::runtime::Executor;

/// An attempt to acquire without waiting for other holders. It resolves to `Some` guard `G`, or to `None`.
///
/// Returned by [`Lock::try_lock`](crate::Lock::try_lock) and the other `try_` methods. Nothing is sent before it is
/// awaited. `None` means that others hold what it asks for, or wait for it, or that the grant arrived after its lease
/// had expired.
///
/// # Errors
/// As for [`Acquire`](crate::Acquire), but never [`QueueFull`](crate::ErrorKind::QueueFull).
///
/// # Cancel safety
/// As for [`Acquire`](crate::Acquire).
#[must_use = "an acquisition does nothing unless awaited"]
pub struct TryAcquire<G = LockGuard> {
    options: Options,
    guard: PhantomData<G>,
}

impl<G> TryAcquire<G> {
    /// See [`Acquire::non_fair`](crate::Acquire::non_fair). Nobody can choose, because a try does not wait.
    pub(crate) fn non_fair(mut self) -> Self {
        self.options.choices.non_fair = true;
        self
    }

    /// Takes all permits of the semaphore that are free.
    pub(crate) fn of_all(primitive: &Primitive, operation: &'static str) -> Self {
        let mut all = Self::new(primitive, operation, 1);
        all.options.choices.takes_all = true;
        all
    }

    /// Takes over a hold of `amount` units that is left in Redis. `None`: it is not there any more.
    pub(crate) fn of_left(primitive: &Primitive, operation: &'static str, (left, amount): (AttemptId, u32)) -> Self {
        let mut resumed = Self::new(primitive, operation, amount);
        resumed.options.choices.resumes = Some(Arc::new(left));
        resumed
    }

    /// Limits the wait for the server's answer. The client's [`retry_timeout`](crate::ConfigBuilder::retry_timeout)
    /// limits it as well, and is the only limit by default. Zero is an
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) error.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.choices.timeout = Some(timeout);
        self
    }

    /// Limits the wait for a hold that another client [retains](crate::Acquire::retained): that client is asked, and
    /// releases the hold unless it uses it. The default is 50 ms. With zero, such a hold is taken for one that is used,
    /// and the attempt resolves to `None` at once.
    pub fn for_retained(mut self, time: Duration) -> Self {
        self.options.choices.for_retained = Some(time);
        self
    }
}

builder!(TryAcquire);

impl<G: Reentrant> TryAcquire<G> {
    /// See [`Acquire::holder`](crate::Acquire::holder). Resolves to `None` while another task acquires for the same
    /// holder.
    pub fn holder(self, holder: &Holder) -> Self {
        self.held_by(holder)
    }

    /// See [`Acquire::deny_reentry`](crate::Acquire::deny_reentry). A hold of the same holder is the error
    /// [`WouldDeadlock`](crate::ErrorKind::WouldDeadlock), and not `None`.
    pub fn deny_reentry(self) -> Self {
        self.denying_reentry()
    }
}

impl<G: Held> TryAcquire<G> {
    pub(crate) fn acquired(self) -> impl Future<Output = Result<Option<G>>> + Send {
        G::acquire(self.options, false, Ok)
    }
}

impl<G: Held> IntoFuture for TryAcquire<G> {
    type Output = Result<Option<G>>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.acquired())
    }
}
