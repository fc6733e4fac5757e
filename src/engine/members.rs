//! The engine's side of the cohorts: a turn is given, taken, or left to the next.
//!
//! | turn | given when | the next |
//! |---|---|---|
//! | lead | nothing that the cohort waits for is under way | acquires |
//! | held | somebody is done with a hold | holds it, with its own token |
//! | attempt | it was held in the cohort for long enough | releases it and queues up, in one request |
//! | attempt | somebody gave up with a request under way | goes on with it |
//! | attempt | it is decided what becomes of a ticket of the cohort | goes on with that |
//! | failed | somebody failed, and those who wait for as long would too | fails, or leads |

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::engine::cohorts::CohortId;
use crate::engine::passing::{AttemptHandoff, SPAN, Turn};
use crate::engine::state::{Attempt, Effects, State};
use crate::engine::{Cleanup, Closed, Engine, Outcome};
use crate::error::Error;
use crate::mutant::{self, Mutant};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::key::Keys;
use crate::protocol::kind::Kind;

/// Why nobody can stand in the cohort.
pub(crate) enum CannotJoin {
    Closed,
    Full,
}

impl Engine {
    /// A member in the cohort, unless as many wait there already; 0 is no limit.
    pub(crate) fn join(&self, cohort: &CohortId, max_waiters: u32) -> Result<u64, CannotJoin> {
        self.change(|state, effects| {
            if state.closed {
                return Err(CannotJoin::Closed);
            }
            let waiting = u32::try_from(state.cohorts.waiting(cohort)).unwrap_or(u32::MAX);
            if max_waiters > 0 && waiting >= max_waiters {
                return Err(CannotJoin::Full);
            }
            let member = state.cohorts.join(cohort);
            state.cohorts.settle(cohort, &mut effects.wakers);
            Ok(member)
        })
    }

    /// Waits for the turn of the member.
    pub(crate) fn poll_turn(
        &self,
        cohort: &CohortId,
        member: u64,
        now: Instant,
        context: &Context<'_>,
    ) -> Poll<Result<Turn, Closed>> {
        // Cloned and dropped outside of the lock, as it is other people's code.
        let mut waker = Some(context.waker().clone());
        self.change(|state, effects| {
            if state.closed {
                return Poll::Ready(Err(Closed));
            }
            let turn = std::task::ready!(state.cohorts.poll(cohort, member, &mut waker)).unwrap_or(Turn::Lead);
            if let Turn::Held { hold, .. } = &turn {
                state.counted.acquired += 1;
                state.counted.passed_on += 1;
                state.renew_again(hold, now);
                state.wake_if_sooner(effects);
            }
            Poll::Ready(Ok(turn))
        })
    }

    /// As [`open`](Self::open), for somebody in a cohort: of a lock, with tokens for those behind it. Queued, it is the
    /// cohort's; what becomes of it if it is dropped before, the cohort decides.
    pub(crate) fn open_in_cohort(
        &self,
        keys: &Arc<Keys>,
        member: u64,
        amount: u32,
        lease: Duration,
        now: Instant,
    ) -> Result<AttemptHandoff, Closed> {
        let mut state = crate::mutex::lock(&self.state);
        if state.closed {
            return Err(Closed);
        }
        let cohort = CohortId::of(keys, amount);
        let others_wait = state.cohorts.waiting(&cohort) > 0;
        let amount = if keys.kind == Kind::Lock && others_wait { SPAN } else { amount };
        state.cohorts.asks(&cohort, member);
        let id =
            self.attempt_id(state.open(Attempt { member: Some(member), ..Attempt::new(keys, amount, lease, now) }));
        Ok(AttemptHandoff { id, amount, before: None, asked: 0, decided: false })
    }

    /// The member has failed, and so does whoever else there has waited since then.
    pub(crate) fn fail(&self, cohort: &CohortId, member: u64, error: &Error, since: Instant, now: Instant) {
        self.change(|state, effects| {
            state.give(cohort, Turn::Failed { error: error.clone(), since }, now, effects);
            state.leave(cohort, member, now, effects);
        });
    }

    /// The member is left, whether its turn has come or not.
    pub(crate) fn leave(&self, cohort: &CohortId, member: u64, now: Instant) {
        self.change(|state, effects| state.leave(cohort, member, now, effects));
    }

    /// Of an attempt that nobody waits for any more: the next in its cohort goes on with it, if there is one without.
    pub(super) fn hand_on(&self, state: &mut State, id: AttemptId, now: Instant, effects: &mut Effects) -> bool {
        let Some(attempt) = state.open.get_mut(&id.n).filter(|attempt| attempt.member.is_some()) else { return false };
        let cohort = CohortId::of(&attempt.keys, attempt.amount);
        if !state.cohorts.is_short(&cohort) {
            return false;
        }
        let (amount, before) = (attempt.amount, attempt.before.clone());
        state.give(
            &cohort,
            Turn::Attempt(AttemptHandoff { id, amount, before, asked: 1, decided: false }),
            now,
            effects,
        );
        true
    }
}

impl State {
    /// Queued, what somebody in a cohort asks for is the cohort's. `false`: nobody in a cohort asks for it.
    pub(super) fn queued_in_cohort(&mut self, id: AttemptId, now: Instant, effects: &mut Effects) -> bool {
        let Some(attempt) = self.open.get_mut(&id.n) else { return false };
        let Some(member) = attempt.member.take() else { return false };
        let (cohort, decided) = (CohortId::of(&attempt.keys, attempt.amount), attempt.outcome.is_some());
        self.cohorts.queues(&cohort, member, id);
        if decided {
            self.turn(id, now, effects);
        }
        true
    }

    /// What becomes of the attempt. If it is a ticket of a cohort, it is for whoever is first by now.
    pub(super) fn decide(&mut self, id: AttemptId, outcome: Outcome, now: Instant, effects: &mut Effects) {
        if let Some(attempt) = self.open.get_mut(&id.n) {
            attempt.decide(outcome, effects);
            self.turn(id, now, effects);
        }
    }

    fn turn(&mut self, id: AttemptId, now: Instant, effects: &mut Effects) {
        let Some(attempt) = self.open.get(&id.n) else { return };
        let (cohort, amount, asked) = (CohortId::of(&attempt.keys, attempt.amount), attempt.amount, attempt.asked);
        if self.cohorts.takes(&cohort, id) {
            self.give(
                &cohort,
                Turn::Attempt(AttemptHandoff { id, amount, before: None, asked, decided: true }),
                now,
                effects,
            );
        }
    }

    fn leave(&mut self, cohort: &CohortId, member: u64, now: Instant, effects: &mut Effects) {
        let turn = self.cohorts.leave(cohort, member, &mut effects.wakers);
        if let Some(turn) = turn.filter(|_| !mutant::on(Mutant::TurnSwallowed)) {
            self.give(cohort, turn, now, effects);
        }
        while let Some(ticket) = self.cohorts.surplus(cohort) {
            if !mutant::on(Mutant::TicketOutlivesItsLine) {
                self.give_up(ticket, now, effects);
            }
        }
        self.cohorts.settle(cohort, &mut effects.wakers);
    }

    /// To the first of those in the cohort who are short of a ticket; if nobody is, what the turn has in Redis is cleaned
    /// up.
    pub(super) fn give(&mut self, cohort: &CohortId, turn: Turn, now: Instant, effects: &mut Effects) {
        let asks = !matches!(turn, Turn::Held { .. });
        let attempt = if let Turn::Attempt(handoff) = &turn { Some(handoff.id.n) } else { None };
        match self.cohorts.give(cohort, turn, &mut effects.wakers) {
            Ok(member) => {
                if asks {
                    self.cohorts.asks(cohort, member);
                }
                if let Some(attempt) = attempt.and_then(|id| self.open.get_mut(&id)) {
                    attempt.member = Some(member);
                }
            }
            Err(Turn::Lead | Turn::Failed { .. }) => {}
            Err(Turn::Held { hold, .. }) => {
                if self.remove_hold(hold.id.n).is_some() {
                    self.clean_up(Cleanup::of(&hold, now), effects);
                }
            }
            Err(Turn::Attempt(AttemptHandoff { id, .. })) => self.give_up(id, now, effects),
        }
    }
}
