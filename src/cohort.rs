//! The local cohort: non-fair acquisitions of one client for as much of one name, behind one ticket or hold.
//!
//! Whoever has waited for longest asks Redis, and its ticket waits there for whoever is first by then. Whoever is done
//! gives what it had to the first who waits, without a command, for a bounded time and number; then it goes back
//! to Redis, and the next one queues up there. Of a semaphore, several ask and hold at a time.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Instant;

use crate::acquire::Request;
use crate::context::Context;
use crate::engine::lease::Hold;
use crate::engine::{AttemptHandoff, CannotJoin, Closed, CohortId, Span, Turn};
use crate::error::{Error, ErrorKind, Result};

/// A member in a cohort, for as long as its owner waits, asks or holds.
#[derive(Debug)]
pub(crate) struct Member {
    context: Arc<Context>,
    cohort: CohortId,
    number: u64,
    since: Instant,
    /// Of the hold, once there is one.
    span: Option<Span>,
}

/// What a member has come to when its turn comes.
pub(crate) enum First {
    Holds(Arc<Hold>),
    /// It acquires, or goes on with what has been begun.
    Leads(Option<AttemptHandoff>),
}

impl Member {
    pub(crate) fn join(context: &Arc<Context>, request: &Request) -> Result<Self> {
        let cohort = CohortId::of(&request.keys, request.amount);
        let joined = context.engine.join(&cohort, request.max_waiters);
        let number = joined.map_err(|no| match no {
            CannotJoin::Closed => request.error(ErrorKind::Closed),
            CannotJoin::Full => request.error(ErrorKind::QueueFull),
        })?;
        Ok(Self { context: context.clone(), cohort, number, since: context.now(), span: None })
    }

    /// Waits for its turn, if that has not come.
    pub(crate) async fn first(&mut self, request: &Request) -> Result<First> {
        let Self { context, cohort, number, .. } = &*self;
        let turn = poll_fn(|task| context.engine.poll_turn(cohort, *number, context.now(), task)).await;
        Ok(match turn.map_err(|Closed| request.error(ErrorKind::Closed))? {
            Turn::Failed { error, since } if self.since <= since => {
                self.pass_failure(&error, since);
                return Err(error);
            }
            Turn::Lead | Turn::Failed { .. } => First::Leads(None),
            Turn::Attempt(handoff) => First::Leads(Some(handoff)),
            Turn::Held { hold, span } => {
                self.span = Some(span);
                First::Holds(hold)
            }
        })
    }

    /// A attempt id for what its owner asks of Redis. Dropped undecided, the next in the cohort goes on with it.
    pub(crate) fn open(&self, request: &Request) -> Result<AttemptHandoff, Closed> {
        let Request { keys, amount, lease, .. } = request;
        self.context.engine.open_in_cohort(keys, self.number, *amount, *lease, self.context.now())
    }

    /// Its owner, who began to ask then, has failed. If those who wait have to fail too, they do, instead of one after
    /// the other: whoever has waited for as long as the client's retry timeout, if the server gave no usable answer; whoever
    /// has waited since then, if they ask for more than the limit.
    pub(crate) fn fail(&self, error: &Error, began: Instant) {
        let since = match error.kind() {
            ErrorKind::Unavailable | ErrorKind::Refused => {
                self.context.now().checked_sub(self.context.config.retry_timeout)
            }
            ErrorKind::OverLimit => Some(began),
            _ => None,
        };
        if let Some(since) = since {
            self.pass_failure(error, since);
        }
    }

    fn pass_failure(&self, error: &Error, since: Instant) {
        self.context.engine.fail(&self.cohort, self.number, error, since, self.context.now());
    }

    /// Its owner has been granted the hold.
    pub(crate) fn holds(&mut self, hold: &Hold) {
        self.span = Some(Span::of(hold, self.context.now() + self.context.config.handoff_time));
    }

    /// Its owner is done with the hold. `true`: another one has it. `false`: it is to be released.
    pub(crate) fn pass(self, hold: &Arc<Hold>) -> bool {
        self.span.is_some_and(|span| self.context.engine.pass(hold, span, self.context.now()))
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.context.engine.leave(&self.cohort, self.number, self.context.now());
    }
}
