//! Names that one master does not serve, although it may serve others: it denies them, or was too slow for a short
//! lease. Pure: time comes in as an argument.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use crate::error::ErrorKind;
use crate::protocol::key::Keys;
use crate::tuning::DOUBT_REMEMBERED;

/// Why an answer of a master is of no use.
pub(super) type Why = (ErrorKind, String);

/// Forgotten doubts are removed from the table when it has doubled, and has at least this many entries.
const LEAST_SWEPT: usize = 64;

#[derive(Debug)]
pub(super) struct Doubt {
    /// What the master has answered. `None`: nothing in time.
    pub(super) why: Option<Why>,
    /// When the doubt arose. A later failure that confirms it does not change this time.
    pub(super) since: Instant,
    /// The end of the doubt. Until then, acquisitions pass the master over.
    until: Instant,
}

#[derive(Debug, Default)]
pub(super) struct Doubts {
    of: HashMap<Arc<Keys>, Doubt>,
    /// The number of entries at which forgotten doubts are removed.
    full: usize,
}

impl Doubts {
    /// `since`: when the request was sent.
    pub(super) fn add(&mut self, keys: &Arc<Keys>, why: Option<Why>, (since, now, until): (Instant, Instant, Instant)) {
        if self.of.len() >= self.full {
            self.of.retain(|_, doubt| !doubt.is_over(now));
            self.full = LEAST_SWEPT.max(2 * self.of.len());
        }
        let since = self.lately(keys, now).map_or(since, |doubt| doubt.since);
        self.of.insert(keys.clone(), Doubt { why, since, until });
    }

    /// Why the master is passed over now.
    pub(super) fn about(&self, keys: &Keys, now: Instant) -> Option<&Doubt> {
        self.of.get(keys).filter(|doubt| now < doubt.until)
    }

    /// As [`about`](Self::about), and also after its end while it is remembered: no one has asked the master again.
    pub(super) fn lately(&self, keys: &Keys, now: Instant) -> Option<&Doubt> {
        self.of.get(keys).filter(|doubt| !doubt.is_over(now))
    }

    /// The master has served the name.
    pub(super) fn served(&mut self, keys: &Keys) {
        if !self.of.is_empty() {
            self.of.remove(keys);
        }
    }

    /// The master has answered, which ends doubts about its silence. What it has denied, it may still deny.
    pub(super) fn answered(&mut self) {
        self.of.retain(|_, doubt| doubt.why.is_some());
    }
}

impl Doubt {
    fn is_over(&self, now: Instant) -> bool {
        now >= self.until + DOUBT_REMEMBERED
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::protocol::kind::Kind;
    use crate::runtime::an_instant;

    const SECOND: Duration = Duration::from_secs(1);

    fn keys(name: &str) -> Arc<Keys> {
        Arc::new(Keys::new("p", Kind::Vote, name).unwrap())
    }

    fn denied() -> Option<Why> {
        Some((ErrorKind::Denied, "NOPERM".to_owned()))
    }

    #[test]
    fn a_doubt_is_about_one_name_for_a_time_and_remembered_for_longer() {
        let (mut doubts, now) = (Doubts::default(), an_instant());
        doubts.add(&keys("a"), denied(), (now, now, now + SECOND));
        assert!(doubts.about(&keys("a"), now).is_some() && doubts.about(&keys("b"), now).is_none());
        let later = now + SECOND;
        assert!(doubts.about(&keys("a"), later).is_none() && doubts.lately(&keys("a"), later).is_some());
        assert!(doubts.lately(&keys("a"), later + DOUBT_REMEMBERED).is_none());
    }

    #[test]
    fn answers_that_are_alike_have_one_beginning() {
        let (mut doubts, now) = (Doubts::default(), an_instant());
        let since = |doubts: &Doubts, now| doubts.lately(&keys("a"), now).unwrap().since;
        for n in 0..9 {
            let later = now + n * SECOND;
            doubts.add(&keys("a"), denied(), (later, later, later + SECOND));
            assert_eq!(since(&doubts, now + n * SECOND), now);
        }
        doubts.served(&keys("a"));
        let later = now + 9 * SECOND;
        doubts.add(&keys("a"), denied(), (later - SECOND / 2, later, later + SECOND));
        assert_eq!(since(&doubts, later), later - SECOND / 2, "when it was asked");
    }

    #[test]
    fn an_answer_ends_what_silence_has_begun() {
        let (mut doubts, now) = (Doubts::default(), an_instant());
        doubts.add(&keys("a"), denied(), (now, now, now + SECOND));
        doubts.add(&keys("b"), None, (now, now, now + SECOND));
        doubts.answered();
        assert!(doubts.about(&keys("a"), now).is_some() && doubts.lately(&keys("b"), now).is_none());
    }

    #[test]
    fn the_table_is_as_large_as_what_it_remembers() {
        let (mut doubts, mut now) = (Doubts::default(), an_instant());
        for n in 0..10_000 {
            now += SECOND;
            doubts.add(&keys(&n.to_string()), denied(), (now, now, now + SECOND));
            assert!(doubts.of.len() <= LEAST_SWEPT, "{}", doubts.of.len());
        }
    }
}
