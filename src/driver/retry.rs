//! Decides when a failed request is sent again, and for how long the caller waits for an answer.
//!
//! | the request | its caller waits |
//! |---|---|
//! | has at least the command timeout left | until the connection gives up, after the command timeout; no timer is set here |
//! | has less time left | until that time is over. The request is then dropped, and may have been sent |

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backoff::Backoff;
use crate::connection::first_connect::FirstConnect;
use crate::connection::{Connection, ConnectionError};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::protocol::dispatch::Failure;
use crate::protocol::key::Named;
use crate::runtime::{Executor, timeout};
use crate::tuning::REQUEST;

/// The parts of a client that a series of requests uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker<'a> {
    pub(crate) executor: &'a Arc<dyn Executor>,
    pub(crate) connection: &'a dyn Connection,
    /// The first connect, if it is made in the background.
    pub(crate) first: Option<&'a FirstConnect>,
    pub(crate) engine: &'a Engine,
    pub(crate) retry_timeout: Duration,
    pub(crate) command_timeout: Duration,
}

/// For how long an operation goes on while it gets no usable answer.
pub(crate) fn patience(retry_timeout: Duration, command_timeout: Duration) -> Duration {
    if retry_timeout.is_zero() { command_timeout } else { retry_timeout }
}

/// A series of requests for one operation.
#[derive(Debug)]
pub(crate) struct Retry<'a> {
    asker: Asker<'a>,
    operation: &'static str,
    named: &'a Named,
    /// `None` until the first failure.
    backoff: Option<Backoff>,
    give_up: Instant,
    /// When the series began, which is when its first request is sent. `None` after that.
    began: Option<Instant>,
    /// Whether the last request before the end is due or was sent.
    is_last: bool,
}

impl<'a> Retry<'a> {
    pub(crate) fn new(asker: Asker<'a>, operation: &'static str, named: &'a Named, began: Instant) -> Self {
        let give_up = began + asker.retry_timeout;
        Self { asker, operation, named, backoff: None, give_up, began: Some(began), is_last: false }
    }

    /// The series began before this caller continues it: the next request is not sent at that time.
    pub(crate) fn resumed(mut self) -> Self {
        self.began = None;
        self
    }

    /// The server has answered, and has more to do for the same operation: the series begins anew.
    pub(crate) fn gets_on(&mut self) {
        let Asker { executor, retry_timeout, .. } = self.asker;
        (self.give_up, self.backoff, self.is_last) = (executor.now() + retry_timeout, None, false);
    }

    /// Called before a request is made. Returns the time at which it is sent. Waits for the first connection of a
    /// client that connects in the background: a request that is made before that is not executed.
    ///
    /// # Errors
    /// No connection was made in time, or the client cannot connect for a reason that time does not mend.
    pub(crate) async fn begin(&mut self) -> Result<Instant> {
        let Asker { executor, connection, first, retry_timeout, command_timeout, .. } = self.asker;
        if let Some(first) = first.filter(|first| first.is_missing()) {
            let left = self.give_up.saturating_duration_since(executor.now());
            let longest = if retry_timeout.is_zero() { command_timeout } else { left };
            // On the heap, because every operation would have to carry this future.
            if Box::pin(first.made_within(longest)).await.is_err()
                && let Some(why) = first.why_down(connection, self.named.main())
            {
                return Err(self.error(why.into()));
            }
            self.began = None;
        }
        Ok(self.sends())
    }

    /// When the request that is made now is sent. For the first one the clock was read as the series began.
    pub(crate) fn sends(&mut self) -> Instant {
        self.began.take().unwrap_or_else(|| self.asker.executor.now())
    }

    /// How long the caller waits for the answer to a request that is sent at `sent`. `None`: as long as the connection
    /// does.
    pub(crate) fn limit(&self, sent: Instant) -> Option<Duration> {
        let Asker { retry_timeout, command_timeout, .. } = self.asker;
        let end = if retry_timeout.is_zero() { self.give_up + command_timeout } else { self.give_up };
        let left = end.saturating_duration_since(sent);
        (left < command_timeout).then_some(left)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.asker.executor.now() >= self.give_up
    }

    /// Waits for the answer to a request that is sent at `sent`, but no longer than until the retry timeout is over.
    /// The request is then given up, and its outcome is unknown.
    pub(crate) async fn bounded<T>(
        &self,
        sent: Instant,
        request: Pin<&mut impl Future<Output = Result<T, Failure>>>,
    ) -> Result<T, Failure> {
        match self.limit(sent) {
            None => request.await,
            // Not sent, because no time is left for an answer.
            Some(Duration::ZERO) => Err(self.asker.late(self.named)),
            Some(left) => self.asker.within(left, self.named, request).await,
        }
    }

    /// Pauses before the next request, or fails. It fails at once if a retry is of no use, and otherwise when the
    /// client's retry timeout is over, counted from the first request. The last pause takes half of the time that is
    /// left, because a request that is sent at the very end could not be answered.
    pub(crate) async fn again_after(&mut self, failure: Failure) -> Result<()> {
        let Asker { executor, engine, .. } = self.asker;
        let left = self.give_up.saturating_duration_since(executor.now());
        if left.is_zero() || !failure.kind().is_retryable() {
            return Err(self.error(failure));
        }
        let backoff = || Backoff::new(REQUEST, engine.jitter_seed());
        let mut pause: Duration = self.backoff.get_or_insert_with(backoff).pause();
        if pause >= left {
            if self.is_last {
                executor.sleep(left).await;
                return Err(self.error(failure));
            }
            (self.is_last, pause) = (true, left / 2);
        }
        executor.sleep(pause).await;
        Ok(())
    }

    pub(crate) fn error(&self, failure: Failure) -> Error {
        failure.into_error(self.operation).with_name(&self.named.name)
    }
}

impl Asker<'_> {
    /// Waits for the answer to a request with these keys, for `left` at most.
    pub(crate) async fn within<T>(
        self,
        left: Duration,
        named: &Named,
        request: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let until = self.executor.now() + left;
        match timeout(self.executor, left, request).await {
            Some(answered) => answered,
            // A sleep ends early only when the runtime is shut down.
            None if self.executor.now() < until => Err(ConnectionError::Closed.into()),
            None => Err(self.late(named)),
        }
    }

    /// The failure of a request when the retry timeout is over. If there is no connection, the failure says why: that
    /// tells more than the missing answer.
    fn late(self, named: &Named) -> Failure {
        let patience = patience(self.retry_timeout, self.command_timeout);
        let silent = || ConnectionError::Unknown(format!("nothing within {patience:?}"));
        Failure::Late(self.connection.why_down(named.main()).unwrap_or_else(silent))
    }
}
