//! A member of a cohort, as its acquisition sees it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use crate::acquire::request::Request;
use crate::cohort::budget::HandoffBudget;
use crate::cohort::id::CohortId;
use crate::cohort::table::Joined;
use crate::context::Context;
use crate::engine::closed::{CannotJoin, Closed};
use crate::engine::lease::Hold;
use crate::engine::turn::{AttemptHandoff, SharedFailure, Turn};
use crate::error::{Error, ErrorKind, Result};

/// Membership in a cohort, which lasts while an acquisition waits, asks or holds. When it is dropped, the member leaves, and
/// its turn goes to the next member.
#[derive(Debug)]
pub(crate) struct Member {
    context: Arc<Context>,
    cohort: CohortId,
    number: u64,
    since: Instant,
    /// The budget of the hold, once the member holds.
    budget: Option<HandoffBudget>,
    /// Whether the member has held and has left the cohort since.
    is_over: bool,
    /// Whether the member has joined in the current poll and waits. The engine then has the waker of this poll.
    has_just_joined: bool,
}

impl Member {
    /// Joins the cohort. The function is async to get the waker of the task; it never suspends.
    pub(super) async fn join(context: &Arc<Context>, request: &Request) -> Result<Self> {
        let cohort = CohortId::of(&request.keys, request.amount);
        let joined = poll_fn(|task| Poll::Ready(context.engine.join(&cohort, request.max_waiters, task.waker()))).await;
        let Joined { number, waits } = joined.map_err(|error| match error {
            CannotJoin::Closed => request.error(ErrorKind::Closed),
            CannotJoin::Full => request.error(ErrorKind::QueueFull),
        })?;
        let (context, since) = (context.clone(), context.now());
        Ok(Self { context, cohort, number, since, budget: None, is_over: false, has_just_joined: waits })
    }

    /// Waits for the turn of the member. Returns the turn, and the time at which the member got it.
    pub(super) async fn turn(&mut self, request: &Request) -> Result<(Turn, Instant)> {
        let mut has_just_joined = std::mem::take(&mut self.has_just_joined);
        let Self { context, cohort, number, .. } = &*self;
        let given = poll_fn(|task| {
            // Joining has stored the waker of this poll.
            if std::mem::take(&mut has_just_joined) {
                return Poll::Pending;
            }
            let now = context.now();
            context.engine.poll_turn(cohort, *number, now, task).map_ok(|given| (given, now))
        });
        match given.await.map_err(|Closed| request.error(ErrorKind::Closed))? {
            (Err(failure), _) if self.since <= failure.since => {
                let error = failure.error.clone();
                self.share(failure);
                Err(error)
            }
            (Err(SharedFailure { .. }), now) => Ok((Turn::Lead, now)),
            (Ok(turn), now) => {
                if let Turn::Held { budget, .. } = &turn {
                    self.budget = Some(*budget);
                }
                Ok((turn, now))
            }
        }
    }

    /// Opens an attempt for the member.
    pub(super) fn open(&self, request: &Request, now: Instant) -> Result<AttemptHandoff, Closed> {
        let Request { keys, amount, lease, .. } = request;
        self.context.engine.open_in_cohort(keys, self.number, *amount, *lease, now)
    }

    /// The member, which began to ask at `began`, has failed. Waiting members that would fail for the same reason fail now, and not
    /// one after the other: after a failure to reach the server or its replicas, those that have waited for the client's retry timeout; after
    /// a request for more than the limit, those that have waited since `began`.
    pub(super) fn fail(&self, error: &Error, began: Instant) {
        let since = match error.kind() {
            ErrorKind::Unavailable | ErrorKind::Refused | ErrorKind::Unacknowledged => {
                self.context.now().checked_sub(self.context.config.retry_timeout)
            }
            ErrorKind::OverLimit => Some(began),
            _ => None,
        };
        if let Some(since) = since {
            self.share(SharedFailure { error: error.clone(), since });
        }
    }

    fn share(&self, failure: SharedFailure) {
        self.context.engine.fail(&self.cohort, self.number, failure, self.context.now());
    }

    /// The member has been granted the hold.
    pub(super) fn set_held(&mut self, hold: &Hold) {
        let (now, time) = (self.context.now(), self.context.config.handoff_time);
        self.budget = Some(HandoffBudget::of(hold.keys.kind.claim(hold.amount), hold.token, now, time));
    }

    /// Called when the member is done with the hold. `true`: the next member holds now. `false`: the caller must release the
    /// hold.
    pub(crate) fn hand_off(mut self, hold: &Arc<Hold>) -> bool {
        let Some(budget) = self.budget else { return false };
        self.is_over = true;
        self.context.engine.hand_off(&self.cohort, hold, budget, self.context.now())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.context.engine.leave(&self.cohort, self.number, self.context.now());
    }
}
