//! How long one grant may stay in a cohort.

use std::time::Instant;

use crate::mutant::{self, Mutant};
use crate::protocol::key::Kind;

/// The most guards that one grant serves. A grant of a lock or of a write reserves as many tokens. `units.lua` spells the same
/// number.
pub(crate) const HANDOFF_BUDGET: u32 = 32;

/// What is left of the hand-offs of one grant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandoffBudget {
    /// For a lock, as many reserved tokens are unused.
    left: u32,
    until: Instant,
}

impl HandoffBudget {
    /// Of a new grant, which may be handed off until `until`. A lock reserved `amount` tokens.
    pub(crate) fn of(kind: Kind, amount: u32, until: Instant) -> Self {
        let guards = if kind == Kind::Lock { amount } else { HANDOFF_BUDGET };
        Self { left: guards.saturating_sub(1), until }
    }

    /// What is left after one more hand-off; `None` if the budget does not allow one.
    pub(crate) fn spend(self, now: Instant) -> Option<Self> {
        if mutant::on(Mutant::LineNeverEnds) {
            return Some(self);
        }
        let mut in_time = now < self.until;
        if mutant::on(Mutant::LineTakesItsTime) {
            in_time = true;
        }
        in_time.then_some(Self { left: self.left.checked_sub(1)?, ..self })
    }
}

/// How many tokens a request of a cohort asks to reserve, or how many units. A lock reserves tokens for the members behind the
/// first one; scripts for writers always do.
pub(crate) fn amount_for_cohort(kind: Kind, amount: u32) -> u32 {
    if kind == Kind::Lock { HANDOFF_BUDGET } else { amount }
}

#[cfg(test)]
mod tests {
    use super::HANDOFF_BUDGET;
    use crate::protocol::Script;

    #[test]
    fn a_writer_reserves_as_many_tokens_as_its_grant_may_serve() {
        for script in ["permit_acquire", "permit_release", "permit_heartbeat", "permit_cancel", "permit_limit"] {
            let script = Script::all().find(|other| other.name() == script).unwrap();
            assert!(script.source().contains(&format!("local SPAN = {HANDOFF_BUDGET}\n")), "{}", script.name());
        }
    }
}
