//! Turns in a cohort: given, handed on by a member that leaves, or left to no one and cleaned up.

use std::sync::Arc;
use std::time::Instant;

use crate::cohort::budget::{HandoffBudget, amount_to_hand_off};
use crate::cohort::id::CohortId;
use crate::cohort::table::{Change, Cohorts};
use crate::engine::attempt::{Attempt, Outcome, Queued};
use crate::engine::attempts::Attempts;
use crate::engine::cleanups::{Cleanup, Cleanups};
use crate::engine::handler::attempt::AttemptHandler;
use crate::engine::holds::Holds;
use crate::engine::lease::Hold;
use crate::engine::turn::{AttemptHandoff, Given, SharedFailure, Turn};
use crate::mutant::{self, Mutant};
use crate::protocol::attempt_id::AttemptId;

pub(in crate::engine) struct HandoffHandler<'a> {
    pub(in crate::engine) cohorts: &'a mut Cohorts<Given>,
    pub(in crate::engine) assets: Assets<'a>,
}

/// What a turn may consist of, and how it ends if no member takes it.
pub(in crate::engine) struct Assets<'a> {
    pub(in crate::engine) attempts: &'a mut Attempts,
    pub(in crate::engine) holds: &'a mut Holds,
    pub(in crate::engine) cleanups: &'a mut Cleanups,
}

impl HandoffHandler<'_> {
    /// The server answered that the attempt waits. `true`: a member asked for it, and its ticket belongs to the cohort now.
    pub(in crate::engine) fn set_queued(&mut self, id: AttemptId, queued: Queued, now: Instant) -> bool {
        let attempts = &mut *self.assets.attempts;
        attempts.silence.ends();
        attempts.set_queued(id, queued, now);
        let Some(attempt) = attempts.get_mut(id.n) else { return false };
        let Some(member) = attempt.member.take() else { return false };
        let is_decided = attempt.outcome.is_some();
        self.cohorts.set_queued(&CohortId::of(&attempt.keys, attempt.amount), member, id);
        if is_decided {
            self.give_decided(id, now);
        }
        true
    }

    /// Sets what became of the attempt. If it is a ticket of a cohort, the member that has waited longest gets it.
    pub(in crate::engine) fn decide(&mut self, id: AttemptId, outcome: Outcome, now: Instant) {
        self.assets.attempts.set_outcome(id.n, outcome);
        self.give_decided(id, now);
    }

    fn give_decided(&mut self, id: AttemptId, now: Instant) {
        let Some(attempt) = self.assets.attempts.get(id.n) else { return };
        let (cohort, amount, asked) = (CohortId::of(&attempt.keys, attempt.amount), attempt.amount, attempt.asked);
        self.cohorts.change(&cohort, |cohort| {
            if cohort.take_ticket(id) {
                let handoff = AttemptHandoff { id, amount, before: None, asked, is_decided: true };
                self.assets.give(cohort, Ok(Turn::Attempt(handoff)), now);
            }
        });
    }

    /// The owner of the hold is done with it. `false`: the owner is to release it, because no waiting member is without a ticket,
    /// or the hold is lost.
    pub(in crate::engine) fn hand_off(&mut self, hold: &Arc<Hold>, budget: HandoffBudget, now: Instant) -> bool {
        let cohort = CohortId::of(&hold.keys, hold.amount);
        let handed_off = self.cohorts.change(&cohort, |cohort| {
            let mut is_held = cohort.is_held(hold.id.n);
            if mutant::on(Mutant::LostHoldHandedOff) {
                is_held = true;
            }
            let turn = if is_held && cohort.needs_turn() { self.assets.successor(hold, budget, now) } else { None };
            if !matches!(turn, Some(Turn::Held { .. })) {
                cohort.end_hold(hold.id.n);
            }
            turn.map(|turn| self.assets.give(cohort, Ok(turn), now)).is_some()
        });
        handed_off.unwrap_or(false)
    }

    /// The owner of the attempt is gone before it was decided. `true`: the next member continues it. `false`: no member is without
    /// a ticket, or no member asked for it.
    pub(in crate::engine) fn hand_on(&mut self, id: AttemptId, now: Instant) -> bool {
        let Some(attempt) = self.assets.attempts.get(id.n).filter(|attempt| attempt.member.is_some()) else {
            return false;
        };
        let cohort = CohortId::of(&attempt.keys, attempt.amount);
        let (amount, before) = (attempt.amount, attempt.before.clone());
        let handed_on = self.cohorts.change(&cohort, |cohort| {
            let needs_turn = cohort.needs_turn();
            if needs_turn {
                let handoff = AttemptHandoff { id, amount, before, asked: 1, is_decided: false };
                self.assets.give(cohort, Ok(Turn::Attempt(handoff)), now);
            }
            needs_turn
        });
        handed_on.unwrap_or(false)
    }

    /// The member has failed, and the next one gets the failure as its turn.
    pub(in crate::engine) fn fail(&mut self, cohort: &CohortId, member: u64, failure: SharedFailure, now: Instant) {
        self.cohorts.change(cohort, |cohort| {
            self.assets.give(cohort, Err(failure), now);
            self.assets.leave(cohort, member, now);
        });
    }

    /// The member leaves, whether its turn has come or not.
    pub(in crate::engine) fn leave(&mut self, cohort: &CohortId, member: u64, now: Instant) {
        self.cohorts.change(cohort, |cohort| self.assets.leave(cohort, member, now));
    }
}

impl Assets<'_> {
    /// Gives the turn to the member that has waited longest. If every waiting member has a ticket, what the turn has in Redis is
    /// cleaned up.
    fn give(&mut self, cohort: &mut Change<'_, Given>, given: Given, now: Instant) {
        let asks = !matches!(given, Ok(Turn::Held { .. }));
        let attempt = if let Ok(Turn::Attempt(handoff)) = &given { Some(handoff.id.n) } else { None };
        match cohort.give(given) {
            Ok(member) => {
                if asks {
                    cohort.set_asking(member);
                }
                if let Some(attempt) = attempt.and_then(|n| self.attempts.get_mut(n)) {
                    attempt.member = Some(member);
                }
            }
            Err(Ok(Turn::Lead) | Err(SharedFailure { .. })) => {}
            Err(Ok(Turn::Held { hold, .. })) => {
                if self.holds.remove(hold.id.n).is_some() {
                    cohort.end_hold(hold.id.n);
                    self.cleanups.push(Cleanup::of(&hold, now));
                }
            }
            Err(Ok(Turn::Attempt(AttemptHandoff { id, .. }))) => self.give_up(id, now),
        }
    }

    fn leave(&mut self, cohort: &mut Change<'_, Given>, member: u64, now: Instant) {
        let mut given = cohort.leave(member);
        if mutant::on(Mutant::TurnSwallowed) {
            given = None;
        }
        if let Some(given) = given {
            self.give(cohort, given, now);
        }
        while let Some(ticket) = cohort.take_surplus_ticket() {
            if mutant::on(Mutant::TicketOutlivesItsCohort) {
                continue;
            }
            self.give_up(ticket, now);
        }
    }

    fn give_up(&mut self, id: AttemptId, now: Instant) {
        AttemptHandler { attempts: self.attempts, cleanups: self.cleanups }.give_up(id, now);
    }

    /// What a hold becomes for the next member once its owner is done with it: `None` if the hold is lost.
    fn successor(&mut self, hold: &Arc<Hold>, budget: HandoffBudget, now: Instant) -> Option<Turn> {
        let mut is_kept = self.holds.is_current(hold);
        if mutant::on(Mutant::LostHoldHandedOff) {
            is_kept = true;
        }
        if !is_kept {
            return None;
        }
        // With less than half of the lease left, the next member asks the server. It could not rely on a renewal in time.
        if let Some(budget) = budget.spend(now)
            && let Some((successor, deadline)) = hold.succeed(now, hold.lease / 2)
        {
            let hold = Arc::new(successor);
            self.holds.insert_unrenewed(&hold, deadline, now);
            return Some(Turn::Held { hold, budget });
        }
        if !hold.end(now) {
            return None;
        }
        self.holds.remove(hold.id.n);
        // Tokens for a whole budget, even if only one member waits: the present owner may be back before the next one is done.
        let amount = amount_to_hand_off(hold.keys.kind.claim(hold.amount));
        let before = Some(hold.clone());
        let attempt = Attempt { before: before.clone(), ..Attempt::new(&hold.keys, amount, hold.lease, now) };
        let id = self.attempts.open(attempt, |n| self.holds.is_held(n));
        Some(Turn::Attempt(AttemptHandoff { before, ..AttemptHandoff::new(id, amount) }))
    }
}
