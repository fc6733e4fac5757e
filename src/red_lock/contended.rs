//! The names that are contended, as far as this program knows. An acquisition of such a name first waits for its turn:
//! a claim would most likely be refused, and its votes would be in the way of those who wait. Pure: time comes in as an
//! argument.

use std::collections::HashMap;
use std::time::Instant;

/// Names that are over are removed when there are twice as many names as after the last removal, and more than these.
const FEW: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Contended {
    /// By name, until when others have it or wait for it, as far as was noticed.
    until: HashMap<Box<str>, Instant>,
    /// The number of names after the last removal.
    kept: usize,
    /// By name, how many acquisitions and holds of this program there are.
    own: HashMap<Box<str>, usize>,
}

impl Contended {
    /// The name is contended until then, or for longer if that is known.
    pub(super) fn note(&mut self, name: &str, until: Instant, now: Instant) {
        match self.until.get_mut(name) {
            Some(known) => *known = until.max(*known),
            None => {
                self.until.insert(name.into(), until);
            }
        }
        if self.until.len() > FEW.max(2 * self.kept) {
            self.until.retain(|_, until| *until > now);
            self.kept = self.until.len();
        }
    }

    /// The wait for a turn is over. If the name was contended before, the next acquisition can expect to wait as long.
    pub(super) fn prolong(&mut self, name: &str, until: Instant) {
        if let Some(known) = self.until.get_mut(name) {
            *known = until.max(*known);
        }
    }

    /// Whether the only acquisition of this program for the name may claim it.
    pub(super) fn may_be_claimed(&self, name: &str, now: Instant) -> bool {
        self.own.get(name).is_none_or(|own| *own == 1) && self.until.get(name).is_none_or(|until| *until <= now)
    }

    /// An acquisition of this program begins.
    pub(super) fn enter(&mut self, name: &str) {
        match self.own.get_mut(name) {
            Some(own) => *own += 1,
            None => {
                self.own.insert(name.into(), 1);
            }
        }
    }

    /// An acquisition of this program, or the hold that it became, has ended.
    pub(super) fn leave(&mut self, name: &str) {
        let Some(own) = self.own.get_mut(name) else { return };
        *own -= 1;
        if *own == 0 {
            self.own.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::runtime::an_instant;

    #[test]
    fn a_name_with_two_acquisitions_of_this_program_is_contended() {
        let (mut contended, now) = (Contended::default(), an_instant());
        for (enters, may) in [(true, true), (true, false), (true, false), (false, false), (false, true)] {
            if enters {
                contended.enter("a")
            } else {
                contended.leave("a")
            }
            assert_eq!((contended.may_be_claimed("a", now), contended.may_be_claimed("b", now)), (may, true));
        }
        contended.leave("a");
        contended.leave("a");
        assert!(contended.own.is_empty());
    }

    #[test]
    fn a_name_is_contended_until_the_latest_time_that_was_noted() {
        let (mut contended, now) = (Contended::default(), an_instant());
        let after = |seconds| now + Duration::from_secs(seconds);
        assert!(contended.may_be_claimed("a", now));
        contended.note("a", after(2), now);
        contended.note("a", after(1), now);
        contended.note("b", after(1), now);
        let seen = |at| ["a", "b", "c"].map(|name| !contended.may_be_claimed(name, at));
        assert_eq!(seen(now), [true, true, false]);
        assert_eq!(seen(after(1)), [true, false, false]);
        assert_eq!(seen(after(2)), [false; 3]);
        contended.prolong("a", after(4));
        contended.prolong("a", after(3));
        contended.prolong("c", after(4));
        let seen = |at| ["a", "b", "c"].map(|name| !contended.may_be_claimed(name, at));
        assert_eq!(seen(after(3)), [true, false, false]);
    }

    #[test]
    fn names_that_are_over_are_removed() {
        let (mut contended, now) = (Contended::default(), an_instant());
        let after = |seconds| now + Duration::from_secs(seconds);
        for n in 0..1000 {
            contended.note(&n.to_string(), after(n + 5), after(n));
            assert!(contended.until.len() <= FEW + 1, "{n}");
        }
        for n in 0..1000 {
            contended.note(&n.to_string(), after(2000), after(1000));
        }
        assert_eq!(contended.until.len(), 1000, "none is over");
        (0..1001).for_each(|n| contended.note(&format!("later {n}"), after(4000), after(3000)));
        assert!(!contended.until.contains_key("0") && contended.until.len() == 1001);
    }
}
