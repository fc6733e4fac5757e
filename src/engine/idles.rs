//! Retained holds: which of them are idle, and which of them others wait for.
//!
//! | state | becomes, on |
//! |---|---|
//! | used | idle, when its last guard goes, if no member of its cohort waits and no other client has asked for it |
//! | idle | used, when the next member joins; released, when another client asks, its time is over, a message may have been lost, or the client ends |
//!
//! Both can end as any other hold. The end of an idle hold is not reported as a loss, because no guard exists.

use std::collections::BTreeSet;
use std::time::Instant;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::cohort::budget::HandoffBudget;

#[derive(Debug)]
struct Idle {
    /// The budget of the next guard, whose token the hold has already.
    budget: HandoffBudget,
    until: Instant,
}

/// Holds by the numbers of their attempts.
#[derive(Debug, Default)]
pub(super) struct Idles {
    idle: FxHashMap<u64, Idle>,
    /// When each of them is released.
    ends: BTreeSet<(Instant, u64)>,
    wanted: FxHashSet<u64>,
}

impl Idles {
    /// The number of idle holds.
    pub(super) fn len(&self) -> usize {
        self.idle.len()
    }

    pub(super) fn is_none_idle(&self) -> bool {
        self.idle.is_empty()
    }

    pub(super) fn is_idle(&self, n: u64) -> bool {
        self.idle.contains_key(&n)
    }

    /// All idle holds.
    pub(super) fn numbers(&self) -> Vec<u64> {
        self.ends.iter().map(|(_, n)| *n).collect()
    }

    pub(super) fn insert(&mut self, n: u64, budget: HandoffBudget, until: Instant) {
        self.idle.insert(n, Idle { budget, until });
        self.ends.insert((until, n));
    }

    /// The hold is idle no more.
    pub(super) fn take(&mut self, n: u64) -> Option<HandoffBudget> {
        let Idle { budget, until } = self.idle.remove(&n)?;
        self.ends.remove(&(until, n));
        Some(budget)
    }

    /// Others wait for the hold, so that it does not become idle any more.
    pub(super) fn set_wanted(&mut self, n: u64) {
        self.wanted.insert(n);
    }

    pub(super) fn is_wanted(&self, n: u64) -> bool {
        self.wanted.contains(&n)
    }

    /// The hold has ended.
    pub(super) fn end(&mut self, n: u64) {
        // Most clients retain nothing.
        if !self.idle.is_empty() {
            self.take(n);
        }
        if !self.wanted.is_empty() {
            self.wanted.remove(&n);
        }
    }

    /// When the next idle hold is to be released.
    pub(super) fn next(&self) -> Option<Instant> {
        self.ends.first().map(|(until, _)| *until)
    }

    /// The idle holds whose time is over.
    pub(super) fn due(&self, now: Instant) -> Vec<u64> {
        self.ends.iter().take_while(|(until, _)| *until <= now).map(|(_, n)| *n).collect()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.idle.is_empty() && self.ends.is_empty() && self.wanted.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::protocol::ticket::Claim;
    use crate::protocol::token::Token;
    use crate::runtime::an_instant;

    #[test]
    fn idle_holds_are_due_in_the_order_of_their_ends() {
        let (start, second) = (an_instant(), Duration::from_secs(1));
        let budget = HandoffBudget::of(Claim::Tokens(2), Token::new(1), start, second);
        let mut idles = Idles::default();
        for (n, until) in [(1, 3), (2, 1), (3, 2)] {
            idles.insert(n, budget, start + until * second);
        }
        assert_eq!((idles.next(), idles.len(), idles.numbers()), (Some(start + second), 3, vec![2, 3, 1]));
        assert_eq!((idles.due(start), idles.due(start + 2 * second)), (vec![], vec![2, 3]));
        assert!(idles.take(2) == Some(budget) && idles.take(2).is_none() && !idles.is_idle(2));
        assert_eq!(idles.next(), Some(start + 2 * second));
        idles.set_wanted(3);
        idles.end(3);
        assert!(!idles.is_wanted(3));
        idles.end(1);
        assert!(idles.is_empty());
    }
}
