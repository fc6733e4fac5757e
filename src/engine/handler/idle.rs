//! Holds that a client keeps after their last guard, for its next acquisition.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cohort::budget::HandoffBudget;
use crate::cohort::id::CohortId;
use crate::cohort::members::Change;
use crate::engine::handler::handoff::{Assets, HandoffHandler};
use crate::engine::lease::Hold;
use crate::engine::turn::{Given, Turn};

impl HandoffHandler<'_> {
    /// Gives an idle hold of the cohort to the member that has just joined. `false`: there is none.
    pub(in crate::engine) fn end_idle(&mut self, cohort: &CohortId, now: Instant) -> bool {
        let given = self.cohorts.change(cohort, |cohort| self.assets.give_idle(cohort, now));
        given.unwrap_or(false)
    }

    /// Another client waits for the hold.
    pub(in crate::engine) fn set_wanted(&mut self, n: u64, now: Instant) {
        if self.assets.holds.is_held(n) {
            self.assets.idles.set_wanted(n);
            self.release_idle(n, now);
        }
    }

    /// Releases the hold if it is idle.
    pub(in crate::engine) fn release_idle(&mut self, n: u64, now: Instant) {
        let Some(hold) = self.assets.holds.get(n).filter(|_| self.assets.idles.is_idle(n)).cloned() else { return };
        let cohort = CohortId::of(&hold.keys, hold.amount);
        self.cohorts.change(&cohort, |cohort| self.assets.release(cohort, &hold, now));
    }

    /// Messages may have been missed, which others have sent to ask for a hold.
    pub(in crate::engine) fn want_all(&mut self, now: Instant) {
        for n in self.assets.holds.retained() {
            self.set_wanted(n, now);
        }
    }
}

impl Assets<'_> {
    /// Keeps the hold after its last guard, for at most `time`. `false`: others wait for it, its tokens are used up, or
    /// too little of its lease is left.
    pub(in crate::engine) fn keep_idle(
        &mut self,
        hold: &mut Arc<Hold>,
        budget: HandoffBudget,
        time: Duration,
        now: Instant,
    ) -> bool {
        let n = hold.id.n;
        if !hold.id.is_retained() || self.idles.is_wanted(n) || !self.holds.is_current(hold) {
            return false;
        }
        // The time of the budget is about others who wait.
        let kept = self.hand_over(hold, budget.kept(now), now);
        let next = kept.or_else(|| self.hand_over_ahead(hold, |ahead| ahead.kept(now), now));
        let Some(Turn::Held { hold, budget, .. }) = next else { return false };
        let Some(deadline) = hold.deadline() else { return false };
        let last = deadline.checked_sub(least(&hold)).unwrap_or(now);
        self.idles.insert(n, budget, last.min(now.checked_add(time).unwrap_or(last)));
        true
    }

    fn give_idle(&mut self, cohort: &mut Change<'_, Given>, now: Instant) -> bool {
        let Some(n) = cohort.one_held().filter(|n| self.idles.is_idle(*n)) else { return false };
        let Some((hold, budget)) = self.holds.get(n).cloned().zip(self.idles.take(n)) else { return false };
        // The process may have stood still past the time at which the hold was to be released.
        if hold.remaining(now) > least(&hold) {
            self.give(cohort, Ok(Turn::Held { hold, budget: budget.begun(now), was_idle: true }), now);
        } else {
            self.release(cohort, &hold, now);
        }
        true
    }
}

/// How much of the lease the next guard must have. A renewal is due at once then, because idle holds are not renewed.
fn least(hold: &Hold) -> Duration {
    hold.lease / 3
}
