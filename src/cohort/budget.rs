//! How long one grant may stay in a cohort.

use std::time::Instant;

use crate::mutant::{self, Mutant};
use crate::protocol::limits::HANDOFF_BUDGET;
use crate::protocol::ticket::Claim;

/// What is left of the hand-offs of one grant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandoffBudget {
    /// If there are tokens, as many reserved ones are unused.
    left: u32,
    until: Instant,
}

impl HandoffBudget {
    /// Of a new grant, which may be handed off until `until`.
    pub(crate) fn of(grant: Claim, until: Instant) -> Self {
        let guards = match grant {
            Claim::Tokens(tokens) => tokens,
            Claim::Units { .. } | Claim::Nothing => HANDOFF_BUDGET,
        };
        Self { left: guards.saturating_sub(1), until }
    }

    /// What is left after one more hand-off; `None` if the budget does not allow one.
    pub(crate) fn spend(self, now: Instant) -> Option<Self> {
        if mutant::on(Mutant::CohortNeverEnds) {
            return Some(self);
        }
        let mut in_time = now < self.until;
        if mutant::on(Mutant::CohortTakesItsTime) {
            in_time = true;
        }
        in_time.then_some(Self { left: self.left.checked_sub(1)?, ..self })
    }
}

/// How many tokens or units a request asks for if the grant will be handed off: tokens for a whole budget.
pub(crate) fn amount_to_hand_off(claim: Claim) -> u32 {
    match claim {
        Claim::Tokens(_) => HANDOFF_BUDGET,
        Claim::Units { units, .. } => units,
        Claim::Nothing => 0,
    }
}
