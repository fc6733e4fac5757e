//! How acquisitions and latches ask the server, and then wait in the queue until the outcome of their attempt is known.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Poll;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::{Either, select};

use crate::acquire::pending::PendingAttempt;
use crate::cohort::id::CohortId;
use crate::context::Context;
use crate::driver::retry::Retry;
use crate::engine::attempt::{Outcome, Queued};
use crate::error::{Error, Result};
use crate::mutant::{self, Mutant};
use crate::mutex::lock;
use crate::protocol::dispatch::Failure;
use crate::protocol::key::{Keys, Named};
use crate::protocol::reply::ServerMillis;

/// An attempt, and what is needed to ask the server about it.
pub(crate) struct Waiter<'a> {
    pub(crate) context: &'a Arc<Context>,
    pub(crate) attempt: PendingAttempt<&'a Context>,
    /// When the caller gives up.
    until: Option<Instant>,
    last: &'a LastFailure,
}

/// What the error of an operation says if the caller's time is over before there is an answer: why its last request
/// failed, or who is in the way.
#[derive(Debug, Default)]
pub(crate) struct LastFailure {
    failure: Mutex<Option<Box<Failure>>>,
    /// The number of the last attempt; 0 if there was none.
    attempt: AtomicU64,
    blocked: OnceLock<Box<str>>,
}

impl LastFailure {
    pub(crate) fn set(&self, failure: Option<&Failure>) {
        *lock(&self.failure) = failure.cloned().map(Box::new);
    }

    /// The number of the attempt that the caller made last.
    pub(crate) fn attempt(&self) -> Option<u64> {
        Some(self.attempt.load(Ordering::Relaxed)).filter(|n| *n > 0)
    }

    pub(crate) fn set_blocked(&self, text: String) {
        self.blocked.get_or_init(|| text.into());
    }

    pub(crate) fn blocked(&self) -> Option<&str> {
        self.blocked.get().map(|text| &**text)
    }
}

/// The outcome of one request.
pub(crate) enum Asked<T> {
    Answered(T),
    /// A message or a heartbeat has said what became of the attempt before the request was answered.
    Decided(Outcome),
    /// The request failed. The pause before the next one is over.
    Failed,
}

impl<'a> Waiter<'a> {
    pub(crate) fn new(
        context: &'a Arc<Context>,
        attempt: PendingAttempt<&'a Context>,
        until: Option<Instant>,
        last: &'a LastFailure,
    ) -> Self {
        last.attempt.store(attempt.id().n, Ordering::Relaxed);
        Self { context, attempt, until, last }
    }

    /// Counts one more request, which is sent at the returned time. `None`: the client is closed. Closing has cancelled
    /// the attempt id, so a later request would acquire for a future that has failed.
    pub(crate) async fn next_request(&mut self, retry: &mut Retry<'_>) -> Result<Option<Instant>> {
        let sent = retry.begin().await.inspect_err(|_| self.attempt.alone = true)?;
        if self.context.engine.is_closed() {
            return Ok(None);
        }
        self.attempt.state.asked += 1;
        Ok(Some(sent))
    }

    /// Waits for the answer to the request sent at `sent`, or for a message that overtakes the answer or makes up for
    /// it. A message about an attempt whose request was sent more than once may concern the first copy, so only the
    /// answer counts then.
    pub(crate) async fn ask<T>(
        &mut self,
        retry: &mut Retry<'_>,
        sent: Instant,
        request: Pin<&mut impl Future<Output = Result<T, Failure>>>,
    ) -> Result<Asked<T>> {
        let answered = {
            let request = pin!(retry.bounded(sent, request));
            match select(request, self.outcome(self.attempt.state.asked == 1)).await {
                Either::Left((answered, _)) => answered,
                Either::Right((outcome, _)) => return Ok(Asked::Decided(outcome)),
            }
        };
        match answered {
            Ok(answer) => {
                if self.attempt.state.asked > 1 {
                    self.last.set(None);
                }
                Ok(Asked::Answered(answer))
            }
            Err(failure) => self.pause(retry, failure).await,
        }
    }

    /// Pauses after a failed request, unless it becomes known what came of the earlier ones. An attempt whose retry
    /// timeout is over is abandoned, and no other member of its cohort continues it: those that have waited for as long
    /// fail as well.
    pub(crate) async fn pause<T>(&mut self, retry: &mut Retry<'_>, failure: Failure) -> Result<Asked<T>> {
        self.last.set(Some(&failure));
        self.attempt.may_be_done |= failure.may_be_done();
        self.context.engine.request_failed(self.attempt.id(), &failure);
        let pause = pin!(retry.again_after(failure));
        let again = match select(pause, self.outcome(true)).await {
            Either::Left((again, _)) => again,
            Either::Right((outcome, _)) => return Ok(Asked::Decided(outcome)),
        };
        self.attempt.alone |= again.is_err();
        again.map(|()| Asked::Failed)
    }

    /// The answer to the request sent at `sent` was that the attempt waits. `true`: its ticket belongs to its cohort
    /// now.
    pub(crate) fn set_queued(&mut self, sent: Instant, holder_left: Option<Duration>, call_again: bool) -> bool {
        let queued = Queued { sent, asked: self.attempt.state.asked, holder_left, call_again };
        self.context.engine.queued(self.attempt.id(), queued, self.context.now())
    }

    /// What became of a queued attempt.
    pub(crate) async fn decided(&self) -> Outcome {
        poll_fn(|context| self.context.engine.poll_outcome(self.attempt.id(), context)).await
    }

    /// As [`decided`](Self::decided) if `listens` is set. Otherwise it never resolves.
    fn outcome(&self, mut listens: bool) -> impl Future<Output = Outcome> + Unpin {
        if mutant::on(Mutant::DeafWhileAsking) {
            listens = false;
        }
        poll_fn(move |context| match listens {
            true => self.context.engine.poll_outcome(self.attempt.id(), context),
            false => Poll::Pending,
        })
    }

    /// The latest time at which the server may execute a request sent at `sent`. After that, no future waits for the
    /// answer.
    pub(crate) fn not_after(&self, sent: Instant, retry: &Retry<'_>) -> ServerMillis {
        if mutant::on(Mutant::NoNotAfter) {
            return 0;
        }
        let left = self.until.map(|until| until.saturating_duration_since(sent));
        self.context.not_after(sent, left.into_iter().chain(retry.limit(sent)).min())
    }
}

/// When a caller with this timeout gives up. A time past the range of the clock is no limit.
pub(crate) fn end_of(context: &Context, limit: Option<Duration>) -> Option<Instant> {
    limit.and_then(|limit| context.now().checked_add(limit))
}

/// The error of an acquisition, or of a wait, whose time is over. Its cause is what keeps the client from a connection,
/// or else why the last request failed: its own, a heartbeat of the name, or a request of another member of its cohort.
pub(crate) fn timed_out(
    context: &Context,
    (keys, amount): (&Arc<Keys>, u32),
    error: Error,
    last: &LastFailure,
) -> Error {
    with_cause(context, keys, error, last, || context.engine.why_unanswered(&CohortId::of(keys, amount)))
}

/// As [`timed_out`]. `others`: why the last request failed that was not the caller's own, if the caller has none.
pub(crate) fn with_cause(
    context: &Context,
    named: &Named,
    error: Error,
    last: &LastFailure,
    others: impl FnOnce() -> Option<Failure>,
) -> Error {
    if let Some(cause) = context.why_down(named.main()) {
        return error.with_source(cause);
    }
    let own = lock(&last.failure).take().map(|failure| *failure);
    match own.or_else(others) {
        Some(failure) => error.with_source(failure),
        None => error,
    }
}

/// Runs the work within the time that is left until `until`. `timed_out` makes the error for work that takes longer.
///
/// Not an `async fn`, which would store what it is given twice: a waiting future carries it for hours.
pub(crate) fn in_time<T>(
    context: &Context,
    until: Option<Instant>,
    work: Pin<&mut impl Future<Output = Result<T>>>,
    timed_out: impl FnOnce() -> Error,
) -> impl Future<Output = Result<T>> {
    let until = until.filter(|_| !mutant::on(Mutant::TimeoutIgnored));
    let Some(until) = until else { return Either::Left(work) };
    let limit = until.saturating_duration_since(context.now());
    let worked = select(work, context.executor.sleep(limit));
    Either::Right(worked.map(|worked| match worked {
        Either::Left((done, _)) => done,
        Either::Right(((), _)) => Err(timed_out()),
    }))
}
