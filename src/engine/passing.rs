//! What is handed from one in a cohort to the next: a hold, and what remains of its span.

use std::sync::Arc;
use std::time::Instant;

use crate::engine::Engine;
use crate::engine::cohorts::CohortId;
use crate::engine::lease::Hold;
use crate::engine::state::{Attempt, State};
use crate::error::Error;
use crate::mutant::{self, Mutant};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::kind::Kind;

pub(crate) use crate::protocol::limits::HANDOFF_BUDGET as SPAN;

/// For how much longer a hold may be passed on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// Reserved tokens that nobody has yet.
    left: u32,
    until: Instant,
}

impl Span {
    /// Of a hold that has just been granted. That of a lock is the last part of its ticket; permits always have one.
    pub(crate) fn of(hold: &Hold, until: Instant) -> Self {
        let span = if hold.keys.kind == Kind::Lock { hold.amount } else { SPAN };
        Self { left: span.saturating_sub(1), until }
    }

    fn next(self, now: Instant) -> Option<Self> {
        if mutant::on(Mutant::LineNeverEnds) {
            return Some(self);
        }
        let in_time = now < self.until || mutant::on(Mutant::LineTakesItsTime);
        in_time.then_some(Self { left: self.left.checked_sub(1)?, ..self })
    }
}

/// What comes to whoever's turn it is.
#[derive(Debug)]
pub(crate) enum Turn {
    /// It asks the server.
    Lead,
    Held {
        hold: Arc<Hold>,
        span: Span,
    },
    Attempt(AttemptHandoff),
    /// The one before has failed with this, and so does whoever has waited since `since`.
    Failed {
        error: Error,
        since: Instant,
    },
}

/// An attempt that goes on in other hands.
#[derive(Clone, Debug)]
pub(crate) struct AttemptHandoff {
    pub(crate) id: AttemptId,
    pub(crate) amount: u32,
    /// The hold that its first request releases.
    pub(crate) before: Option<Arc<Hold>>,
    /// How often a request for it may have been sent.
    pub(crate) asked: u32,
    /// It is known what became of it in the queue.
    pub(crate) decided: bool,
}

impl Engine {
    /// Its owner has no use for the hold any more. `false`: it is to tell the server, because nobody in the cohort is short
    /// of a ticket, or because the hold is lost.
    pub(crate) fn pass(&self, hold: &Arc<Hold>, span: Span, now: Instant) -> bool {
        let passed = self.change(|state, effects| {
            let cohort = CohortId::of(&hold.keys, hold.amount);
            let held = state.cohorts.is_held(&cohort, hold.id.n) || mutant::on(Mutant::LostHoldPassed);
            let turn = if held && state.cohorts.is_short(&cohort) { state.passed(self, hold, span, now) } else { None };
            let passed = turn.is_some();
            match turn {
                Some(turn) => state.give(&cohort, turn, now, effects),
                None => state.cohorts.ends(&cohort, hold.id.n),
            }
            state.cohorts.settle(&cohort, &mut effects.wakers);
            passed
        });
        if passed {
            hold.tell_over();
        }
        passed
    }
}

impl State {
    /// What a hold that its guard is done with is for the next one; nothing, if it is lost.
    fn passed(&mut self, engine: &Engine, hold: &Arc<Hold>, span: Span, now: Instant) -> Option<Turn> {
        let id = hold.id.n;
        let kept = self.holds.get(&id).is_some_and(|kept| Arc::ptr_eq(kept, hold));
        if !kept && !mutant::on(Mutant::LostHoldPassed) {
            return None;
        }
        // With less of its lease left, the next one asks the server rather than the watchdog's luck.
        if let Some(span) = span.next(now)
            && let Some((hold, deadline)) = hold.pass(now, hold.lease / 2)
        {
            let hold = Arc::new(hold);
            self.holds.insert(id, hold.clone());
            // Not renewed until somebody has it: a future that nobody polls must not keep others waiting for ever.
            self.schedule.remove(id);
            self.schedule.insert(id, now, deadline, None);
            return Some(Turn::Held { hold, span });
        }
        if !hold.end(now) {
            return None;
        }
        self.remove_hold(id);
        // Even with none behind the next one: whoever is done now may be back before that one is.
        let amount = if hold.keys.kind == Kind::Lock { SPAN } else { hold.amount };
        let attempt = Attempt { before: Some(hold.clone()), ..Attempt::new(&hold.keys, amount, hold.lease, now) };
        let id = engine.attempt_id(self.open(attempt));
        Some(Turn::Attempt(AttemptHandoff { id, amount, before: Some(hold.clone()), asked: 0, decided: false }))
    }

    /// Somebody has looked at the hold, and has it.
    pub(super) fn renew_again(&mut self, hold: &Arc<Hold>, now: Instant) {
        if let Some(deadline) = hold.deadline().filter(|_| self.holds.contains_key(&hold.id.n)) {
            self.schedule.remove(hold.id.n);
            self.keep(hold, deadline, now);
        }
    }
}
