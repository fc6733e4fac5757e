//! The wait for permits, which are reserved in one call.

use std::future::IntoFuture;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, select};

use super::calls::Calls;
use super::quota::{MAX_REFILL, Terms};
use crate::acquire::wait::{LastFailure, end_of, in_time, with_cause};
use crate::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::mutant::{self, Mutant};
use crate::observe::{self, meter};
use crate::protocol::key::Named;
use crate::protocol::rate::Taken;
use crate::runtime::Executor;

const OPERATION: &str = "until_ready";

/// A wait for permits, returned by [`RateLimiter::until_ready`](crate::RateLimiter::until_ready). Nothing is sent
/// before it is awaited, or before [`block`](Self::block) is called in blocking code.
///
/// One command reserves the permits and tells how long they are not free. The rest of the wait is a timer, which needs
/// no connection. It begins when the answer arrives, so the wait is longer than needed by the time that the answer
/// took, and never shorter.
///
/// # Errors
/// - [`TimedOut`](ErrorKind::TimedOut): the permits are free only after the [`timeout`](Self::timeout), or after 31
///   days ([`MAX_REFILL`]). The error comes at once, its message says how long the wait would be, and nothing was
///   taken. Or there was no answer within the timeout: then the permits may have been taken.
/// - [`InvalidInput`](ErrorKind::InvalidInput): the name or the quota is invalid, or the cost or the timeout is zero.
///   Nothing was sent.
/// - [`OverLimit`](ErrorKind::OverLimit): the cost is more than the burst. Nothing was sent.
/// - [`Unavailable`](ErrorKind::Unavailable): the server gave no answer. The permits may have been taken.
/// - [`Closed`](ErrorKind::Closed): the client is closed, or was closed during the wait. Permits that were reserved are
///   spent.
/// - Other errors of the server. Nothing was taken.
///
/// # Cancel safety
/// Permits that were reserved are spent, even if the future is dropped before they are free: those behind have their
/// times already. If it is dropped before the answer, the permits may or may not have been taken.
#[derive(Clone, Debug)]
#[must_use = "a wait does nothing unless awaited"]
pub struct UntilReady {
    calls: Calls,
    cost: u32,
    timeout: Option<Duration>,
}

impl UntilReady {
    pub(super) fn new(calls: Calls, cost: u32) -> Self {
        Self { calls, cost, timeout: None }
    }

    /// Limits the wait, from the call on. Nothing is taken if the permits are free only later. The wait can end later
    /// than that by the time that the answer took, because it begins with the answer. By default the limit is 31 days
    /// ([`MAX_REFILL`]). Zero is an [`InvalidInput`](ErrorKind::InvalidInput) error: use
    /// [`RateLimiter::check_n`](crate::RateLimiter::check_n) to ask without waiting.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    pub(crate) fn executor(&self) -> &Arc<dyn Executor> {
        &self.context().executor
    }

    fn context(&self) -> &Arc<Context> {
        self.calls.primitive.context()
    }

    async fn ready(self) -> Result<()> {
        let terms = self.calls.terms(OPERATION, self.cost)?;
        let named = self.calls.primitive.keys(OPERATION)?;
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            let reason = "timeout is zero; use check to ask without waiting";
            return Err(Error::because(ErrorKind::InvalidInput, OPERATION, reason).with_name(&named.name));
        }
        let waiting = self.reserved(named, &terms);
        observe::acquiring(self.context().observed(OPERATION, named), true, meter::of_wait, waiting).await
    }

    /// Reserves the permits, and waits until they are free.
    async fn reserved(&self, named: &Named, terms: &Terms) -> Result<()> {
        let (context, began) = (self.context(), self.context().now());
        let until = end_of(context, self.timeout);
        let longest = || {
            let left = until.map_or(MAX_REFILL, |until| until.saturating_duration_since(context.now()));
            left.min(MAX_REFILL)
        };
        let last = LastFailure::default();
        let late = || {
            let error = error(named, "no answer came in time, and the permits may have been taken");
            with_cause(context, named, error, &last, || None)
        };
        let Taken { limited, wait, .. } = {
            // On the heap: a waiting future would carry for hours what only a request needs.
            let mut take = Box::pin(self.calls.take(OPERATION, terms, (longest, until.is_some()), Some(&last)));
            in_time(context, until, take.as_mut(), late).await?
        };
        if limited {
            return Err(error(named, format!("the permits are free in {wait:?}")));
        }
        if wait.is_zero() {
            return Ok(());
        }
        // Not from when the request was sent: the server has seen it later, and its permits are free later, too.
        let answered = if mutant::on(Mutant::PermitsFromRequest) { began } else { context.now() };
        let free = answered + wait;
        let slept = context.executor.sleep(free.saturating_duration_since(context.now()));
        select(slept, pin!(context.engine.closed())).await;
        // A sleep ends early only when the runtime is shut down.
        if context.engine.is_closed() || context.now() < free {
            return Err(context.closed(OPERATION, named));
        }
        Ok(())
    }
}

fn error(named: &Named, reason: impl Into<String>) -> Error {
    Error::because(ErrorKind::TimedOut, OPERATION, reason).with_name(&named.name)
}

impl IntoFuture for UntilReady {
    type Output = Result<()>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.ready())
    }
}
