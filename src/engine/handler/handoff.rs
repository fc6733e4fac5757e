//! Turns in a cohort: how they are given, handed on by a member that leaves, or cleaned up if no member wants them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cohort::budget::HandoffBudget;
use crate::cohort::id::CohortId;
use crate::cohort::members::Change;
use crate::cohort::table::Cohorts;
use crate::engine::ahead::{Ahead, Aheads};
use crate::engine::attempt::{Outcome, Queued};
use crate::engine::attempts::Attempts;
use crate::engine::cleanups::Cleanups;
use crate::engine::handler::attempt::AttemptHandler;
use crate::engine::holds::Holds;
use crate::engine::idles::Idles;
use crate::engine::lease::Hold;
use crate::engine::turn::{AttemptHandoff, Given, SharedFailure, Turn};
use crate::mutant::{self, Mutant};
use crate::protocol::attempt_id::AttemptId;

pub(in crate::engine) struct HandoffHandler<'a> {
    pub(in crate::engine) cohorts: &'a mut Cohorts<Given>,
    pub(in crate::engine) assets: Assets<'a>,
}

/// The tables with everything that a turn can consist of, which also end it if no member takes it.
pub(in crate::engine) struct Assets<'a> {
    pub(in crate::engine) attempts: &'a mut Attempts,
    pub(in crate::engine) holds: &'a mut Holds,
    pub(in crate::engine) cleanups: &'a mut Cleanups,
    pub(in crate::engine) aheads: &'a mut Aheads,
    pub(in crate::engine) idles: &'a mut Idles,
}

/// What happens to a hold when its owner is done with it.
enum Next {
    Turn(Turn),
    /// The hold waits for the next hand-off budget.
    Parked,
    /// The owner must release the hold.
    Released,
}

impl HandoffHandler<'_> {
    /// Records the server's answer that the attempt waits. `true`: a member made the attempt, and its ticket belongs to
    /// the cohort now.
    pub(in crate::engine) fn set_queued(&mut self, id: AttemptId, queued: Queued, now: Instant) -> bool {
        let attempts = &mut *self.assets.attempts;
        attempts.silence.ends();
        if let Some(before) = attempts.get_mut(id.n).and_then(|attempt| attempt.before.take()) {
            self.assets.cleanups.set_ended(&before, queued.sent);
        }
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

    /// Sets the outcome of the attempt. If its ticket belongs to a cohort, the member that has waited longest gets it.
    pub(in crate::engine) fn decide(&mut self, id: AttemptId, outcome: Outcome, now: Instant) {
        if let Some(attempt) = self.assets.attempts.get_mut(id.n) {
            // It stood in the queue. The waiters behind it have asked an earlier holder.
            attempt.wanted |= matches!(outcome, Outcome::Granted { .. });
        }
        self.assets.attempts.set_outcome(id.n, outcome);
        self.give_decided(id, now);
    }

    fn give_decided(&mut self, id: AttemptId, now: Instant) {
        let Some(attempt) = self.assets.attempts.get(id.n) else { return };
        let cohort = CohortId::of(&attempt.keys, attempt.amount);
        self.cohorts.change(&cohort, |cohort| self.assets.give_decided(cohort, id, now));
    }

    /// Called when the owner is done with the hold, which is kept for the time `retained` if no member waits. `false`:
    /// the owner must release it, because every waiting member has a ticket, or the hold is lost or not kept.
    pub(in crate::engine) fn hand_off(
        &mut self,
        cohort: &CohortId,
        hold: &mut Arc<Hold>,
        (budget, retained): (HandoffBudget, Option<Duration>),
        now: Instant,
    ) -> bool {
        let handed_off = self.cohorts.change(cohort, |cohort| {
            let mut is_held = cohort.is_held(hold.id.n);
            if mutant::on(Mutant::LostHoldHandedOff) {
                is_held = true;
            }
            let goes_on = is_held && cohort.needs_turn();
            if is_held
                && cohort.none_waits()
                && let Some(time) = retained
                && self.assets.keep_idle(hold, budget, time, now)
            {
                return true;
            }
            let next = if goes_on { self.assets.next(hold, budget, now) } else { Next::Released };
            if !matches!(next, Next::Turn(Turn::Held { .. }) | Next::Parked) {
                cohort.end_hold(hold.id.n);
                self.assets.end_ahead(cohort, hold.id.n, now);
            }
            let handed_off = !matches!(next, Next::Released);
            if let Next::Turn(turn) = next {
                self.assets.give(cohort, Ok(turn), now);
            }
            // Another hold that waits for its answer may have been kept for the member that has this one now.
            self.assets.release_parked(cohort, now);
            handed_off
        });
        handed_off.unwrap_or(false)
    }

    /// Called when the owner of an attempt is gone before the outcome is known. `true`: the next member continues the
    /// attempt. `false`: every waiting member has a ticket, or the attempt belongs to no cohort. `since`: the time
    /// since which its requests have had no usable answer.
    pub(in crate::engine) fn hand_on(&mut self, id: AttemptId, since: Option<Instant>, now: Instant) -> bool {
        let Some(attempt) = self.assets.attempts.get(id.n).filter(|attempt| attempt.member.is_some()) else {
            return false;
        };
        let (keys, amount, before) = (attempt.keys.clone(), attempt.amount, attempt.before.clone());
        if before.is_some() {
            // The reply to the release, which may have messages, is not read. The next member may not be polled.
            self.assets.attempts.set_reply_lost(&keys, now);
        }
        let cohort = CohortId::of(&keys, amount);
        let handed_on = self.cohorts.change(&cohort, |cohort| {
            let needs_turn = cohort.needs_turn();
            if needs_turn {
                let handoff = AttemptHandoff { id, amount, before, asked: 1, is_decided: false, since };
                self.assets.give(cohort, Ok(Turn::Attempt(handoff)), now);
            }
            needs_turn
        });
        handed_on.unwrap_or(false)
    }

    /// Called when the member has failed. The next member gets the failure as its turn.
    pub(in crate::engine) fn fail(&mut self, cohort: &CohortId, member: u64, failure: SharedFailure, now: Instant) {
        self.cohorts.change(cohort, |cohort| {
            self.assets.give(cohort, Err(failure), now);
            self.assets.leave(cohort, member, now);
        });
    }

    /// Called when a member of the cohort has got a hold from the server. The next one may ask for another hold now.
    pub(in crate::engine) fn release_parked(&mut self, cohort: &CohortId, now: Instant) {
        self.cohorts.change(cohort, |cohort| self.assets.release_parked(cohort, now));
    }

    /// Removes the member, whether or not its turn has come.
    pub(in crate::engine) fn leave(&mut self, cohort: &CohortId, member: u64, now: Instant) {
        self.cohorts.change(cohort, |cohort| self.assets.leave(cohort, member, now));
    }
}

impl Assets<'_> {
    /// Gives the turn to the member that has waited longest. If every waiting member has a ticket already, the ticket
    /// or hold of the turn is removed from Redis.
    pub(in crate::engine) fn give(&mut self, cohort: &mut Change<'_, Given>, given: Given, now: Instant) {
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
            Err(Ok(Turn::Lead { .. }) | Err(SharedFailure { .. })) => {}
            Err(Ok(Turn::Held { hold, .. })) => self.release(cohort, &hold, now),
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
        self.give_up_surplus(cohort, now);
        self.release_parked(cohort, now);
    }

    /// Gives the attempt to a member if its outcome is known and its ticket belongs to the cohort.
    pub(in crate::engine) fn give_decided(&mut self, cohort: &mut Change<'_, Given>, id: AttemptId, now: Instant) {
        let Some(attempt) = self.attempts.get(id.n).filter(|attempt| attempt.outcome.is_some()) else { return };
        let (amount, asked) = (attempt.amount, attempt.asked);
        let is_granted = matches!(attempt.outcome, Some(Outcome::Granted { .. }));
        if cohort.take_ticket(id) {
            let handoff = AttemptHandoff { asked, is_decided: true, ..AttemptHandoff::new(id, amount) };
            self.give(cohort, Ok(Turn::Attempt(handoff)), now);
        } else if is_granted {
            self.verify_before(cohort, id, now);
        }
    }

    pub(in crate::engine) fn give_up_surplus(&mut self, cohort: &mut Change<'_, Given>, now: Instant) {
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

    /// Decides what happens to a hold whose owner is done with it, while members wait.
    fn next(&mut self, hold: &mut Arc<Hold>, budget: HandoffBudget, now: Instant) -> Next {
        let mut is_kept = self.holds.is_current(hold);
        if mutant::on(Mutant::LostHoldHandedOff) {
            is_kept = true;
        }
        if !is_kept {
            return Next::Released;
        }
        if let Some(turn) =
            self.hand_over(hold, budget, now).or_else(|| self.hand_over_ahead(hold, |ahead| ahead.begun(now), now))
        {
            return Next::Turn(turn);
        }
        if budget.is_in_time(now) && self.park(hold, now) {
            return Next::Parked;
        }
        // The ticket for the next turn is already queued.
        if let Some(Ahead::Queued(_)) = self.aheads.get(hold.id.n) {
            return Next::Released;
        }
        self.requeue(hold, now).map_or(Next::Released, Next::Turn)
    }
}
