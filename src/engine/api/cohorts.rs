//! The members of cohorts.

use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use crate::cohort::budget::{HandoffBudget, amount_to_hand_off};
use crate::cohort::id::CohortId;
use crate::cohort::table::Joined;
use crate::engine::Engine;
use crate::engine::attempt::Attempt;
use crate::engine::lease::Hold;
use crate::engine::turn::{AttemptHandoff, CannotJoin, Closed, Given, SharedFailure, Turn};
use crate::observe::meter;
use crate::protocol::key::Keys;

impl Engine {
    /// Adds a member to the cohort, unless `max_waiters` members wait there; 0 is no limit. If the cohort has an idle
    /// hold, the member gets it. If the member has to wait, its turn wakes `waker`. One without a waker does not join a
    /// cohort in which it would have to wait.
    pub(crate) fn join(
        &self,
        cohort: &CohortId,
        max_waiters: u32,
        waker: Option<&Waker>,
        now: Instant,
    ) -> Result<Joined, CannotJoin> {
        // Cloned and dropped while the tables are unlocked, because a waker is foreign code.
        let (waits, mut waker) = (waker.is_some(), waker.cloned());
        self.change(|state| {
            if self.is_closed() {
                return Err(CannotJoin::Closed);
            }
            if state.has_idle(cohort) {
                let joined = state.cohorts.join(cohort, &mut None);
                state.handoff_handler().end_idle(cohort, now);
                return Ok(Joined { waits: false, ..joined });
            }
            if max_waiters > 0 && state.cohorts.waiting(cohort) >= max_waiters as usize {
                return Err(CannotJoin::Full);
            }
            if !waits && state.cohorts.would_wait(cohort) {
                return Err(CannotJoin::Busy);
            }
            Ok(state.cohorts.join(cohort, &mut waker))
        })
    }

    /// Resolves to the member's turn, and the number of the last member of any cohort that has joined by then.
    pub(crate) fn poll_turn(
        &self,
        cohort: &CohortId,
        member: u64,
        now: Instant,
        context: &Context<'_>,
    ) -> Poll<Result<(Given, u64), Closed>> {
        let poll = |waker: &mut Option<Waker>| {
            self.change(|state| {
                if self.is_closed() {
                    return Poll::Ready(Err(Closed));
                }
                let given = ready!(state.cohorts.poll(cohort, member, waker)).unwrap_or(Ok(Turn::Lead { since: None }));
                if let Ok(Turn::Held { hold, was_idle, .. }) = &given {
                    state.stats.acquired += 1;
                    let count = if *was_idle { &mut state.stats.retained } else { &mut state.stats.passed_on };
                    *count += 1;
                    state.holds.start_renewals(hold, now);
                }
                Poll::Ready(Ok((given, state.cohorts.last_member())))
            })
        };
        // Most polls find a turn, and need no waker.
        let mut polled = poll(&mut None);
        if polled.is_pending() {
            // Cloned and dropped while the tables are unlocked, because a waker is foreign code.
            polled = poll(&mut Some(context.waker().clone()));
        }
        if let Poll::Ready(Ok((Ok(Turn::Held { was_idle, .. }), _))) = &polled {
            let count = if *was_idle { meter::retained } else { meter::handed_off };
            count(1);
        }
        polled
    }

    /// As [`open`](Self::open), for a member. Once it is queued, its ticket belongs to the cohort; if it is dropped
    /// before, another member continues it.
    pub(crate) fn open_in_cohort(
        &self,
        keys: &Arc<Keys>,
        member: u64,
        (amount, is_retained): (u32, bool),
        lease: Duration,
        now: Instant,
    ) -> Result<AttemptHandoff, Closed> {
        self.change(|state| {
            if self.is_closed() {
                return Err(Closed);
            }
            let cohort = CohortId::of(keys, amount);
            let serves_others = is_retained || state.cohorts.waiting(&cohort) > 0;
            let amount = if serves_others { amount_to_hand_off(keys.kind.claim(amount), is_retained) } else { amount };
            state.cohorts.set_asking(&cohort, member);
            let attempt = Attempt { member: Some(member), is_retained, ..Attempt::new(keys, amount, lease, now) };
            let id = state.open(attempt);
            Ok(AttemptHandoff::new(id, amount))
        })
    }

    /// The member has failed. Every other member within its [`Reach`](SharedFailure::reach) fails too.
    pub(crate) fn fail(&self, cohort: &CohortId, member: u64, failure: SharedFailure, now: Instant) {
        self.change(|state| state.handoff_handler().fail(cohort, member, failure, now));
    }

    /// Removes the member, whether or not its turn has come.
    pub(crate) fn leave(&self, cohort: &CohortId, member: u64, now: Instant) {
        self.change(|state| state.handoff_handler().leave(cohort, member, now));
    }

    /// Called when the owner is done with the hold. `true`: the next member holds now, or the hold is kept for one, for
    /// at most the time `retained`. `false`: the owner must release the hold.
    pub(crate) fn hand_off(
        &self,
        cohort: &CohortId,
        hold: &mut Arc<Hold>,
        budget: HandoffBudget,
        retained: Option<Duration>,
        now: Instant,
    ) -> bool {
        let handed_off = self.change(|state| state.handoff_handler().hand_off(cohort, hold, (budget, retained), now));
        if handed_off {
            hold.notify_over();
        }
        handed_off
    }
}
