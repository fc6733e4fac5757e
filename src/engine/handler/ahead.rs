//! The answer to a request for the next hand-off budget, and what happens to that budget when the hold ends.

use std::sync::Arc;
use std::time::Instant;

use crate::cohort::budget::{HandoffBudget, Spent, amount_to_hand_off};
use crate::cohort::id::CohortId;
use crate::cohort::members::Change;
use crate::engine::ahead::{Ahead, Ask, amount_to_queue};
use crate::engine::attempt::{Attempt, Queued};
use crate::engine::cleanup::Cleanup;
use crate::engine::handler::attempt::AttemptHandler;
use crate::engine::handler::handoff::{Assets, HandoffHandler};
use crate::engine::lease::{Hold, Loss};
use crate::engine::state::State;
use crate::engine::turn::{AttemptHandoff, Given, Turn};
use crate::mutant::{self, Mutant};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::reply::AskedAhead;

impl State {
    /// Handles the answer to a request sent at `sent`. `None` if no usable answer came.
    pub(in crate::engine) fn ahead_answered(
        &mut self,
        ask: &Ask,
        answer: Option<AskedAhead>,
        sent: Instant,
        now: Instant,
    ) {
        // If the hold has ended meanwhile, its end has already given up the attempt.
        let Some(is_parked) = self.aheads.under_way(ask) else { return };
        if answer.is_some() {
            self.attempts.silence.ends();
        }
        if let Some(AskedAhead::NotHeld { .. }) = answer {
            ask.attempt.and_then(|attempt| self.attempts.remove(attempt.n));
            self.aheads.set(ask.held.n, Ahead::Refused);
            self.hold_handler().lose_and_clean_up(ask.held.n, Loss::Gone, now);
            return;
        }
        let HandoffHandler { cohorts, mut assets } = self.handoff_handler();
        cohorts.change(&CohortId::of(&ask.keys, ask.amount), |cohort| {
            assets.ahead_answered(cohort, ask, is_parked, answer, sent, now);
        });
    }
}

impl Assets<'_> {
    fn ahead_answered(
        &mut self,
        cohort: &mut Change<'_, Given>,
        ask: &Ask,
        is_parked: bool,
        answer: Option<AskedAhead>,
        sent: Instant,
        now: Instant,
    ) {
        let n = ask.held.n;
        let Some(mut hold) = self.holds.get(n).cloned() else { return };
        match (answer, ask.attempt) {
            (Some(AskedAhead::Granted { token, .. }), attempt) => {
                attempt.and_then(|attempt| self.attempts.remove(attempt.n));
                self.holds.set_extended(&hold, hold.lease, sent, now);
                self.aheads.set(n, Ahead::Granted(ask.budget.renewed(token, is_parked, now)));
                if is_parked {
                    match self.hand_over_ahead(&mut hold, |ahead| ahead.begun(now), now) {
                        Some(turn) => self.give(cohort, Ok(turn), now),
                        None => self.release(cohort, &hold, now),
                    }
                }
            }
            (Some(AskedAhead::Queued { .. }), Some(attempt)) => {
                let queued = Queued { sent, asked: 1, holder_left: None, call_again: false };
                self.attempts.set_queued(attempt, queued, now);
                self.aheads.set(n, Ahead::Queued(attempt));
                self.idles.set_wanted(n);
                if is_parked || self.idles.is_idle(n) {
                    self.release(cohort, &hold, now);
                }
            }
            (answer, attempt) => {
                if let Some(AskedAhead::Wanted { .. }) = answer {
                    self.idles.set_wanted(n);
                }
                self.aheads.set(n, Ahead::Refused);
                if let Some(attempt) = attempt {
                    // The server may still execute a copy of the request.
                    self.give_up_ahead(attempt, now);
                }
                if is_parked && let Some(turn) = self.requeue(&hold, now) {
                    cohort.end_hold(n);
                    self.end_ahead(cohort, n, now);
                    self.give(cohort, Ok(turn), now);
                }
            }
        }
    }

    fn give_up_ahead(&mut self, attempt: AttemptId, now: Instant) {
        AttemptHandler { attempts: self.attempts, cleanups: self.cleanups }.give_up_from(attempt, true, now);
    }

    /// Returns the hold of the next member, if the budget allows a hand-off and enough of the lease is left. Asks for
    /// the next budget when half of this one is used.
    pub(in crate::engine) fn hand_over(
        &mut self,
        hold: &mut Arc<Hold>,
        budget: HandoffBudget,
        now: Instant,
    ) -> Option<Turn> {
        let Spent { budget, token } = budget.spend(self.idles.is_wanted(hold.id.n), now)?;
        // With less than half of the lease left, the next member asks the server, because it could not rely on a
        // renewal in time.
        let hold = self.holds.pass_on(hold, hold.lease / 2, token, now)?;
        // A lease that replicas must acknowledge must not be renewed by a request that does not wait for them.
        let may_ask = hold.keys.kind.asks_ahead() && hold.replicas == 0;
        let claim = hold.keys.kind.claim(hold.amount);
        // This runs at every hand-off: what costs least comes first.
        let is_time = budget.is_half_spent() || claim.is_exclusive() && budget.is_half_used(now);
        if may_ask && is_time && self.aheads.get(hold.id.n).is_none() {
            let attempt = claim.is_exclusive().then(|| {
                let attempt = Attempt::new(&hold.keys, amount_to_queue(claim), hold.lease, now);
                self.attempts.open(attempt, |n| self.holds.is_held(n))
            });
            self.aheads.begin(Ask::new(&hold, budget, attempt));
        }
        Some(Turn::Held { hold, budget, was_idle: false })
    }

    /// As [`hand_over`](Self::hand_over), by the budget that was granted ahead. The present one is used up first: it
    /// costs a request to replace a budget, whatever is left of it.
    pub(in crate::engine) fn hand_over_ahead(
        &mut self,
        hold: &mut Arc<Hold>,
        begin: impl FnOnce(HandoffBudget) -> HandoffBudget,
        now: Instant,
    ) -> Option<Turn> {
        let budget = self.aheads.take_granted(hold.id.n)?;
        self.hand_over(hold, begin(budget), now)
    }

    /// The hold stays in Redis until the answer to the request for the next budget. `false`: there is no such request,
    /// or too little of the lease is left.
    pub(in crate::engine) fn park(&mut self, hold: &mut Arc<Hold>, now: Instant) -> bool {
        if !matches!(self.aheads.get(hold.id.n), Some(Ahead::UnderWay { .. })) {
            return false;
        }
        self.holds.pass_on(hold, hold.lease / 2, None, now).is_some() && self.aheads.park(hold.id.n)
    }

    /// Lets the next member release the hold and queue up, in one request. `None`: the hold is over.
    pub(in crate::engine) fn requeue(&mut self, hold: &Arc<Hold>, now: Instant) -> Option<Turn> {
        if !hold.end(now) {
            return None;
        }
        self.holds.remove(hold.id.n);
        // Asks for the tokens of a whole budget even if only one member waits, because the present owner may want the
        // hold again before that member is done.
        let is_retained = hold.id.is_retained();
        let amount = amount_to_hand_off(hold.keys.kind.claim(hold.amount), is_retained);
        let before = Some(hold.clone());
        let attempt =
            Attempt { before: before.clone(), is_retained, ..Attempt::new(&hold.keys, amount, hold.lease, now) };
        let id = self.attempts.open(attempt, |n| self.holds.is_held(n));
        Some(Turn::Attempt(AttemptHandoff { before, ..AttemptHandoff::new(id, amount) }))
    }

    /// Releases holds that are kept for an answer, if no member is left that they could go to.
    pub(in crate::engine) fn release_parked(&mut self, cohort: &mut Change<'_, Given>, now: Instant) {
        if !self.aheads.is_any_parked() {
            return;
        }
        let parked = cohort.held().filter(|n| self.aheads.is_parked(*n));
        let parked = parked.skip(cohort.wait_without_ticket());
        let surplus: Vec<_> = parked.filter_map(|n| self.holds.get(n).cloned()).collect();
        for hold in surplus {
            self.release(cohort, &hold, now);
        }
    }

    /// Releases a hold that belongs to no member.
    pub(in crate::engine) fn release(&mut self, cohort: &mut Change<'_, Given>, hold: &Arc<Hold>, now: Instant) {
        let n = hold.id.n;
        if self.holds.remove(n).is_some() {
            cohort.end_hold(n);
            self.cleanups.push(Cleanup::of(hold, now));
            self.end_ahead(cohort, n, now);
        }
    }

    /// Called when a ticket is granted that does not belong to the cohort. If it was queued ahead, the server has no
    /// hold of the cohort any more: it has lost it, or the lease has ended there. The guard is told by the answer to a
    /// renewal, and the cohort goes on with the ticket.
    pub(in crate::engine) fn verify_before(&mut self, cohort: &Change<'_, Given>, id: AttemptId, now: Instant) {
        let held = cohort.one_held().filter(|n| self.aheads.is_for(*n, id));
        if let Some(n) = held.filter(|_| !mutant::on(Mutant::AheadNotChecked)) {
            self.holds.verify(n, now);
        }
    }

    /// Called when the hold has ended. A ticket that was queued ahead belongs to the cohort now. A request without an
    /// answer is given up.
    pub(in crate::engine) fn end_ahead(&mut self, cohort: &mut Change<'_, Given>, n: u64, now: Instant) {
        self.idles.end(n);
        match self.aheads.end(n) {
            Some(Ahead::UnderWay { attempt, .. }) => {
                if let Some(attempt) = attempt {
                    self.give_up_ahead(attempt, now);
                }
            }
            Some(Ahead::Unsent(attempt)) => drop(self.attempts.remove(attempt.n)),
            Some(Ahead::Queued(attempt)) => {
                if mutant::on(Mutant::AheadForgotten) {
                    return;
                }
                cohort.add_ticket(attempt);
                self.give_decided(cohort, attempt, now);
                self.give_up_surplus(cohort, now);
            }
            Some(Ahead::Granted(_) | Ahead::Refused) | None => {}
        }
    }
}
