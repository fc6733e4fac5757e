//! Finds out whether the hold in the server is the one that was granted.

use super::Hold;
use crate::mutant::{self, Mutant};
use crate::protocol::limits::{HANDOFF_BUDGET, WRITE};
use crate::protocol::renewed::HoldState;
use crate::protocol::ticket::Claim;
use crate::protocol::token::Token;

impl Hold {
    /// What a renewal found out about this hold. The new master after a failover may have lost the grant and still have
    /// the ticket: it grants the same attempt id once more, with another token. That is another hold, and others may
    /// have held in between.
    ///
    /// A hold that replicas acknowledge keeps the token that the server has until it ends. Others may get another
    /// budget meanwhile.
    pub(crate) fn found(&self, state: HoldState) -> HoldState {
        if mutant::on(Mutant::TokenNotCompared) {
            return state;
        }
        match state {
            // Without a queue, there is no ticket that could be granted once more, and no token is stored.
            HoldState::Held(stored)
                if self.replicas > 0
                    && self.keys.kind.has_queue()
                    && !stored.is_some_and(|stored| self.stems_from(stored)) =>
            {
                HoldState::NotHeld
            }
            state => state,
        }
    }

    /// Whether the hold's token is one of those that were reserved with `first`. The server keeps `first` while the
    /// hold is handed off.
    fn stems_from(&self, first: Token) -> bool {
        let reserved = match self.keys.kind.claim(self.amount) {
            Claim::Tokens(tokens) => tokens.max(1),
            Claim::Units { units: WRITE, .. } => HANDOFF_BUDGET,
            // Also a writer that became a reader: the server knows the token of its guard.
            Claim::Units { .. } | Claim::Nothing => 1,
        };
        self.token().get().checked_sub(first.get()).is_some_and(|handoffs| handoffs < u64::from(reserved))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;
    use crate::engine::lease::Term;
    use crate::protocol::attempt_id::AttemptId;
    use crate::protocol::key::Keys;
    use crate::protocol::kind::Kind;
    use crate::protocol::limits::READ;
    use crate::runtime::an_instant;

    const LEASE: Duration = Duration::from_secs(30);

    fn hold(kind: Kind, amount: u32, token: u64, replicas: u32) -> Hold {
        let keys = Arc::new(Keys::new("p", kind, "n").unwrap());
        let id = AttemptId { client: Uuid::nil(), n: 1 };
        let hold = Hold::new(keys, id, amount, Token::new(token), LEASE, Term::Renewed, an_instant() + LEASE);
        hold.acknowledged_by(replicas)
    }

    #[test]
    fn only_a_hold_with_a_token_of_its_budget_is_the_one_that_was_granted() {
        let semaphore = Kind::Semaphore { limit: 3 };
        for (kind, amount, token, first, last) in [
            (Kind::Lock, 1, 100, 100, 100),
            // A cohort has handed the hold off up to 31 times, and the server still has the first token.
            (Kind::Lock, 32, 100, 69, 100),
            (Kind::ReadWrite, WRITE, 100, 69, 100),
            (Kind::ReadWrite, READ, 100, 100, 100),
            (semaphore, 1, 0, 0, 0),
        ] {
            let hold = hold(kind, amount, token, 1);
            for stored in 0..200 {
                let state = HoldState::Held(Some(Token::new(stored)));
                let expected = if (first..=last).contains(&stored) { state } else { HoldState::NotHeld };
                assert_eq!(hold.found(state), expected, "{kind:?} {amount} {stored}");
            }
            assert_eq!(hold.found(HoldState::Held(None)), HoldState::NotHeld);
        }
    }

    /// Its server stores no token.
    #[test]
    fn a_hold_without_a_queue_is_the_one_that_was_granted() {
        for kind in [Kind::Redisson { fenced: false }, Kind::Redisson { fenced: true }, Kind::TimedPermit { keep: 0 }] {
            let hold = hold(kind, 1, 100, 1);
            for state in [HoldState::Held(None), HoldState::Held(Some(Token::new(1))), HoldState::NotHeld] {
                assert_eq!(hold.found(state), state, "{kind:?}");
            }
        }
    }

    /// A cohort may have asked for another budget, and the answer may be under way.
    #[test]
    fn a_hold_that_waits_for_no_replicas_may_have_another_token() {
        let hold = hold(Kind::Lock, 1, 100, 0);
        for state in [HoldState::Held(None), HoldState::Held(Some(Token::new(7))), HoldState::Unanswered] {
            assert_eq!(hold.found(state), state);
        }
        assert_eq!(hold.found(HoldState::NotHeld), HoldState::NotHeld);
    }
}
