//! The life of an attempt.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::cohort::id::CohortId;
use crate::engine::Engine;
use crate::engine::attempt::{Attempt, Outcome, Queued};
use crate::engine::turn::Closed;
use crate::mutant::{self, Mutant};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::dispatch::Failure;
use crate::protocol::key::Keys;

impl Engine {
    /// Returns an attempt id for a request that does not wait.
    pub(crate) fn fresh(&self) -> Result<AttemptId, Closed> {
        self.change(|state| if self.is_closed() { Err(Closed) } else { Ok(state.attempts.fresh_id()) })
    }

    /// Opens an attempt under a new attempt id. The attempt is open before its first request is sent, because the
    /// message of its grant can overtake the answer.
    pub(crate) fn open(
        &self,
        keys: &Arc<Keys>,
        amount: u32,
        lease: Duration,
        now: Instant,
    ) -> Result<AttemptId, Closed> {
        self.change(|state| {
            if self.is_closed() {
                return Err(Closed);
            }
            Ok(state.open(Attempt::new(keys, amount, lease, now)))
        })
    }

    /// The server answered that the attempt waits. `true`: its ticket belongs to a cohort now.
    pub(crate) fn queued(&self, id: AttemptId, queued: Queued, now: Instant) -> bool {
        self.change(|state| state.handoff_handler().set_queued(id, queued, now))
    }

    /// The server has released the hold that the attempt follows, by a request sent at `sent`, and has queued nothing.
    pub(crate) fn released_before(&self, id: AttemptId, sent: Instant) {
        self.change(|state| {
            if let Some(before) = state.attempts.get_mut(id.n).and_then(|attempt| attempt.before.take()) {
                state.cleanups.set_ended(&before, sent);
            }
        });
    }

    /// A request about the attempt got no usable answer. If a member of a cohort made the attempt, the others wait for
    /// that answer, too.
    pub(crate) fn request_failed(&self, id: AttemptId, failure: &Failure) {
        self.change(|state| {
            let Some(attempt) = state.attempts.get(id.n).filter(|attempt| attempt.member.is_some()) else { return };
            state.cohorts.set_failed(&CohortId::of(&attempt.keys, attempt.amount), failure);
        });
    }

    /// Why those that wait hear nothing: how the last heartbeat of the name failed, or else the last request of a
    /// member of the cohort. `None`: it was answered.
    pub(crate) fn why_unanswered(&self, cohort: &CohortId) -> Option<Failure> {
        let state = self.look();
        state.attempts.why_unanswered(cohort.keys()).or_else(|| state.cohorts.why_failed(cohort)).cloned()
    }

    /// Resolves to the outcome of the attempt.
    pub(crate) fn poll_outcome(&self, id: AttemptId, context: &mut Context<'_>) -> Poll<Outcome> {
        // Cloned and dropped while the tables are unlocked, because a waker is foreign code.
        let mut waker = Some(context.waker().clone());
        let mut state = self.look();
        let polled = state.attempts.poll(id, &mut waker);
        drop(state);
        polled
    }

    /// Decides the attempt: the server said that it has nothing of it.
    pub(crate) fn forget(&self, id: AttemptId) {
        // The waker is dropped while the tables are unlocked.
        let _waker = self.change(|state| (state.attempts.stop_waiting(id), state.attempts.remove(id.n)));
    }

    /// Gives the attempt up. Its ticket or hold is removed from Redis in the background.
    pub(crate) fn abandon(&self, id: AttemptId, now: Instant) {
        self.change(|state| state.attempt_handler().give_up(id, now));
    }

    /// The future that waited for the attempt is gone. The next member of its cohort continues the attempt; without
    /// one, it is given up. `since`: the time since which its requests have had no usable answer.
    pub(crate) fn drop_pending(&self, id: AttemptId, since: Option<Instant>, now: Instant) {
        self.change(|state| {
            if mutant::on(Mutant::NoCleanUpOnDrop) {
                state.attempts.remove(id.n);
                return;
            }
            if !state.handoff_handler().hand_on(id, since, now) {
                state.attempt_handler().give_up(id, now);
            }
        });
    }
}
