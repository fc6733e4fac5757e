//! How long one grant may stay in a cohort.

use std::time::{Duration, Instant};

use crate::mutant::{self, Mutant};
use crate::protocol::limits::{HANDOFF_BUDGET, LARGEST_BUDGET};
use crate::protocol::ticket::Claim;
use crate::protocol::token::Token;

/// How many more times a grant may be handed off, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HandoffBudget {
    /// The token that the grant was given. The server knows the hold by this token.
    first: Token,
    /// How many guards the grant may serve.
    size: u32,
    /// How many reserved tokens are unused. Only holds with tokens count them.
    left: u32,
    /// The time from which the budget counts, and how long the grant may be handed off.
    start: Instant,
    time: Duration,
    /// How many guards the next budget is to serve.
    next: u32,
    /// When the client learned of the tokens.
    known_since: Instant,
    /// Whether the next hand-off has no time limit.
    is_kept: bool,
}

/// A hand-off that the budget allows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    /// The budget after the hand-off.
    pub(crate) budget: HandoffBudget,
    /// The first token of a budget that was asked for ahead. Otherwise the next guard has the next token.
    pub(crate) token: Option<Token>,
}

impl HandoffBudget {
    /// The budget of a new grant, which may be handed off for `time`.
    pub(crate) fn of(grant: Claim, token: Token, now: Instant, time: Duration) -> Self {
        let size = match grant {
            Claim::Tokens(tokens) => tokens,
            Claim::Units { .. } | Claim::Nothing => HANDOFF_BUDGET,
        };
        Self {
            first: token,
            size,
            left: size.saturating_sub(1),
            start: now,
            time,
            next: size.max(HANDOFF_BUDGET),
            known_since: now,
            is_kept: false,
        }
    }

    /// The next budget, which was asked for ahead and granted `now`: tokens from `token` on. With `ran_dry`, the cohort
    /// has waited for it: its hand-offs are faster than the server's answers, and the budget after this one is larger.
    pub(crate) fn renewed(&self, token: Token, ran_dry: bool, now: Instant) -> Self {
        let size = self.next;
        let next = if ran_dry { (size * 2).min(LARGEST_BUDGET) } else { size };
        Self { first: token, size, left: size, next, known_since: now, ..*self }
    }

    /// The same, with its time counted from now on: the one before is used up.
    pub(crate) fn begun(self, now: Instant) -> Self {
        Self { start: now, ..self }
    }

    /// The same, for a hold that no member waits for: its next hand-off has no time limit.
    pub(crate) fn kept(self, now: Instant) -> Self {
        Self { is_kept: true, ..self.begun(now) }
    }

    /// Counts one hand-off, and returns what is left. `None` if the budget does not allow another one. If others have
    /// asked for the hold, no more hand-offs are left than after a grant from the queue.
    pub(crate) fn spend(self, is_wanted: bool, now: Instant) -> Option<Spent> {
        if mutant::on(Mutant::CohortNeverEnds) {
            return Some(Spent { budget: self, token: None });
        }
        let mut in_time = self.is_in_time(now);
        if mutant::on(Mutant::CohortTakesItsTime) {
            in_time = true;
        }
        let left = if is_wanted { self.left.min(HANDOFF_BUDGET - 1) } else { self.left };
        let left = left.checked_sub(1).filter(|_| in_time)?;
        let token = (self.left == self.size).then_some(self.first);
        Some(Spent { budget: Self { left, is_kept: false, ..self }, token })
    }

    /// Whether the time of the budget is not over yet. Its tokens may still be used up.
    pub(crate) fn is_in_time(&self, now: Instant) -> bool {
        self.is_kept || now < self.start + self.time
    }

    /// Whether half of the budget is used: of its hand-offs, or of its time.
    pub(crate) fn is_half_used(&self, now: Instant) -> bool {
        self.is_half_spent() || !self.time.is_zero() && now >= self.start + self.time / 2
    }

    /// Whether half of the hand-offs are used.
    pub(crate) fn is_half_spent(&self) -> bool {
        self.left <= self.size / 2
    }

    /// The token that the server knows of the hold.
    pub(crate) fn known(&self) -> Token {
        self.first
    }

    /// When the client learned of the tokens.
    pub(crate) fn known_since(&self) -> Instant {
        self.known_since
    }

    /// How many tokens to ask for next.
    pub(crate) fn next(&self) -> u32 {
        self.next
    }
}

/// How many tokens or units a request asks for if the grant will be handed off: tokens for a whole budget. A retained
/// hold is given to one guard after the other for as long as no other client asks for it.
pub(crate) fn amount_to_hand_off(claim: Claim, is_retained: bool) -> u32 {
    claim.amount_for(if is_retained { LARGEST_BUDGET } else { HANDOFF_BUDGET })
}

/// The tokens that the server reserves for a grant that will be handed off. For a retained writer, it reserves as many
/// as for a retained lock.
pub(crate) fn reserved(claim: Claim, is_retained: bool) -> Claim {
    match claim {
        Claim::Units { .. } if is_retained => Claim::Tokens(LARGEST_BUDGET),
        claim => claim,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::an_instant;

    #[test]
    fn each_budget_knows_since_when_it_has_its_tokens() {
        let (start, second) = (an_instant(), Duration::from_secs(1));
        let budget = HandoffBudget::of(Claim::Tokens(2), Token::new(1), start, 9 * second);
        let ahead = budget.renewed(Token::new(100), false, start + second).begun(start + 2 * second);
        let spent = ahead.spend(false, start + 3 * second).unwrap();
        assert_eq!((budget.known_since(), spent.budget.known_since()), (start, start + second));
        assert_eq!(spent.token, Some(Token::new(100)));
    }

    /// The tokens are those of the larger budget.
    #[test]
    fn a_budget_of_a_wanted_hold_serves_as_many_as_any_other() {
        let (start, second) = (an_instant(), Duration::from_secs(1));
        let budget = HandoffBudget::of(Claim::Tokens(LARGEST_BUDGET), Token::new(1), start, second);
        let hand_offs = |budget: HandoffBudget| {
            let next = |budget: &HandoffBudget| budget.spend(true, start).map(|spent| spent.budget);
            std::iter::successors(Some(budget), next).count() - 1
        };
        assert_eq!(hand_offs(budget), HANDOFF_BUDGET as usize - 1);
        let few = HandoffBudget::of(Claim::Tokens(9), Token::new(1), start, second);
        assert_eq!(hand_offs(few), 8);
        assert_eq!((budget.next(), few.next()), (LARGEST_BUDGET, HANDOFF_BUDGET));
        let ahead = budget.renewed(Token::new(1000), false, start).begun(start).spend(true, start).unwrap();
        assert_eq!(ahead.token, Some(Token::new(1000)), "the first one of the next budget");
    }
}
