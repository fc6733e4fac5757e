//! A member of a cohort, as its acquisition sees it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::{Duration, Instant};

use crate::acquire::request::Request;
use crate::cohort::budget::{HandoffBudget, reserved};
use crate::cohort::id::CohortId;
use crate::cohort::table::Joined;
use crate::context::Context;
use crate::engine::lease::Hold;
use crate::engine::turn::{AttemptHandoff, CannotJoin, Closed, Reach, SharedFailure, Turn};
use crate::error::{Error, ErrorKind, Result};

/// Membership in a cohort, which lasts while an acquisition waits or asks. When it is dropped before the member
/// [holds](Self::holds), the member leaves, and its turn goes to the next member.
#[derive(Debug)]
pub(super) struct Member<'a> {
    context: &'a Context,
    cohort: &'a CohortId,
    number: u64,
    joined: Instant,
    /// The last member that fails if this one does: the last one that had joined when this one began to ask.
    last: u64,
    /// Whether the member holds, so that the drop does not leave the cohort.
    holds: bool,
    /// Whether there has been no usable answer since the member joined, because the attempt that it got last failed for
    /// earlier members.
    is_unanswered: bool,
    /// Whether the member has joined in the current poll and waits. The engine then has the waker of this poll.
    has_just_joined: bool,
}

impl<'a> Member<'a> {
    /// Joins the cohort. `None`: the request does not wait, and another member asks or holds. The function is async to
    /// get the waker of the task; it never suspends.
    pub(super) async fn join(context: &'a Context, cohort: &'a CohortId, request: &Request) -> Result<Option<Self>> {
        let now = context.now();
        let join = |task: &mut task::Context<'_>| {
            let waker = request.wait.then(|| task.waker());
            Poll::Ready(context.engine.join(cohort, request.max_waiters, waker, now))
        };
        match poll_fn(join).await {
            Ok(Joined { number, waits }) => {
                let has_just_joined = waits;
                let (joined, last, [holds, is_unanswered]) = (now, number, [false; 2]);
                Ok(Some(Self { context, cohort, number, joined, last, holds, is_unanswered, has_just_joined }))
            }
            Err(CannotJoin::Busy) => Ok(None),
            Err(CannotJoin::Closed) => Err(request.error(ErrorKind::Closed)),
            Err(CannotJoin::Full) => Err(request.error(ErrorKind::QueueFull)),
        }
    }

    /// Waits for the turn of the member. Returns the turn, and the time at which the member got it. If the server has
    /// given the members before no usable answer, the time of this one is limited by when it joined.
    pub(super) async fn turn(&mut self, request: &Request) -> Result<(Turn, Instant)> {
        let mut has_just_joined = std::mem::take(&mut self.has_just_joined);
        let Self { context, cohort, number, .. } = *self;
        let given = poll_fn(|task| {
            // Joining has stored the waker of this poll.
            if std::mem::take(&mut has_just_joined) {
                return Poll::Pending;
            }
            let now = context.now();
            context.engine.poll_turn(cohort, number, now, task).map_ok(|given| (given, now))
        });
        let ((given, last), now) = given.await.map_err(|Closed| request.error(ErrorKind::Closed))?;
        self.last = last;
        let unanswered = std::mem::take(&mut self.is_unanswered).then_some(self.joined);
        let turn = match given {
            Err(SharedFailure { error, reach }) => {
                let (is_own, since) = match reach {
                    Reach::JoinedBy(since) => (!self.asks_by_itself(&error, since, now), self.left_by(&error)),
                    Reach::Last(last) => (self.number <= last, None),
                };
                if is_own {
                    self.share(SharedFailure { error: error.clone(), reach });
                    return Err(error);
                }
                Turn::Lead { since }
            }
            Ok(Turn::Attempt(mut attempt)) => {
                attempt.since = attempt.since.map(|since| since.max(self.joined));
                Turn::Attempt(attempt)
            }
            Ok(Turn::Lead { since }) => Turn::Lead { since: since.or(unanswered) },
            Ok(turn) => turn,
        };
        Ok((turn, now))
    }

    /// Whether the attempt that the member was given has failed for earlier members only: there has been no usable
    /// answer `since` then, and this member joined later. It asks by itself, within the time that it has left.
    pub(super) fn outlives(&mut self, error: &Error, since: Instant) -> bool {
        let outlives = self.asks_by_itself(error, since, self.context.now());
        self.is_unanswered = outlives && self.left_by(error).is_some();
        outlives
    }

    /// Whether the member asks by itself after others have failed that had no usable answer since `since`: it joined
    /// later, and has time left.
    fn asks_by_itself(&self, error: &Error, since: Instant, now: Instant) -> bool {
        let has_time = |joined| now < joined + self.context.patience();
        self.joined > since && self.left_by(error).is_none_or(has_time)
    }

    /// From when the time of the member counts after a failure of earlier members. An operator who drops the waiters
    /// has had an answer of the server.
    fn left_by(&self, error: &Error) -> Option<Instant> {
        (error.kind() != ErrorKind::Dropped).then_some(self.joined)
    }

    /// Opens an attempt for the member.
    pub(super) fn open(&self, request: &Request, now: Instant) -> Result<AttemptHandoff, Closed> {
        let Request { keys, amount, lease, retained, .. } = request;
        self.context.engine.open_in_cohort(keys, self.number, (*amount, retained.is_some()), *lease, now)
    }

    /// The member has failed. After a failure to reach the server or its replicas, a request for more than the limit,
    /// or an operator who drops the waiters, those that waited when the member began to ask would fail for the same
    /// reason. They fail now, and not one after the other. `since`: the time since which the member has had no usable
    /// answer.
    pub(super) fn fail(&self, error: &Error, since: Option<Instant>) {
        use ErrorKind::{Certificate, Denied, Dropped, OverLimit, Refused, Unacknowledged, Unavailable, Unsupported};
        let reach = match error.kind() {
            Unavailable | Refused | Denied | Certificate | Unsupported | Dropped => {
                since.map_or(Reach::Last(self.last), Reach::JoinedBy)
            }
            Unacknowledged | OverLimit => Reach::Last(self.last),
            _ => return,
        };
        self.share(SharedFailure { error: error.clone(), reach });
    }

    fn share(&self, failure: SharedFailure) {
        self.context.engine.fail(self.cohort, self.number, failure, self.context.now());
    }

    /// Marks the member as a holder: the drop no longer leaves the cohort. From now on, [`InCohort`] hands the hold
    /// off.
    pub(super) fn holds(mut self) {
        self.holds = true;
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        if !self.holds {
            self.context.engine.leave(self.cohort, self.number, self.context.now());
        }
    }
}

/// The cohort of a hold, which gets the hold when its owner is done with it.
#[derive(Debug)]
pub(crate) struct InCohort {
    cohort: CohortId,
    budget: HandoffBudget,
    /// How long the hold is kept if no member waits.
    retained: Option<Duration>,
}

impl InCohort {
    pub(super) fn new(cohort: CohortId, budget: HandoffBudget, request: &Request) -> Self {
        Self { cohort, budget, retained: request.retained }
    }

    /// A hold that the server has just granted.
    pub(super) fn granted(context: &Context, cohort: CohortId, hold: &Hold, request: &Request) -> Self {
        let (now, time) = (context.now(), context.config.handoff_time);
        let reserved = reserved(hold.keys.kind.claim(hold.amount), hold.id.is_retained());
        let budget = HandoffBudget::of(reserved, hold.token(), now, time);
        Self::new(cohort, budget, request)
    }

    /// When the client learned of the hold's token. The token may be older than the hold: earlier members of the cohort
    /// had others of the same budget.
    pub(crate) fn tokens_since(&self) -> Instant {
        self.budget.known_since()
    }

    /// Called when the owner is done with the hold. `true`: the next member holds now, or the hold is kept for one.
    /// `false`: the caller must release the hold.
    pub(crate) fn hand_off(self, context: &Context, hold: &mut Arc<Hold>) -> bool {
        context.engine.hand_off(&self.cohort, hold, self.budget, self.retained, context.now())
    }
}
