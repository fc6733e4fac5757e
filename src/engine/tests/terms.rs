//! Holds whose term ends them, as the engine keeps them.

use super::*;
use crate::engine::lease::deadline;

const SECOND: Duration = Duration::from_secs(1);

impl Setup {
    fn capped(&self, limit: Duration) -> Arc<Hold> {
        let (id, term) = (self.open(&keys("a")), Term::Until(self.now + limit));
        let until = deadline(self.now, term.lease(LEASE, self.now));
        self.engine.hold(id, 1, Token::new(7), term, until, self.now).unwrap()
    }

    /// Answers every renewal at once, until the hold is lost. Returns when each renewal was sent, counted from the
    /// start, and which lease it asked for.
    fn renewals(&mut self, hold: &Arc<Hold>) -> Vec<(Duration, Duration)> {
        let (start, mut renewals) = (self.now, Vec::new());
        while hold.loss(self.now).is_none() {
            let work = self.engine.work(self.now);
            if !work.renew.is_empty() {
                renewals.push((self.now - start, hold.renewal(self.now)));
                self.engine.renewed(self.now, self.now, &work.renew, &[]);
            }
            self.now = self.engine.work(self.now).next.unwrap();
        }
        renewals
    }
}

#[test]
fn a_capped_hold_is_renewed_up_to_its_end() {
    let mut setup = setup();
    let (start, limit) = (setup.now, LEASE * 2);
    let hold = setup.capped(limit);
    let renewals = setup.renewals(&hold);
    assert!(setup.now <= start + limit && setup.now > start + limit - SECOND, "{:?}", setup.now - start);
    assert!(renewals.iter().all(|(sent, lease)| *sent + *lease <= limit && *lease <= LEASE), "{renewals:?}");
    let (last, others) = renewals.split_last().unwrap();
    assert_eq!(last.0 + last.1, limit);
    assert!(others.len() >= 2 && others.iter().all(|(_, lease)| *lease == LEASE), "{renewals:?}");
    setup.engine.work(setup.now);
    assert_eq!(setup.engine.stats().lost, 1);
}

#[test]
fn a_cap_within_the_lease_is_never_renewed() {
    let mut setup = setup();
    let start = setup.now;
    let hold = setup.capped(SECOND);
    assert_eq!(setup.renewals(&hold), []);
    assert!(setup.now <= start + SECOND);
}

#[test]
fn an_extended_hold_lasts_longer_and_is_cleaned_up_for_as_long() {
    let mut setup = setup();
    let start = setup.now;
    let hold = setup.grant(setup.open(&keys("a")), false);
    setup.now += LEASE / 2;
    hold.asks_for(LEASE * 4);
    assert_eq!(setup.engine.extended(&hold, LEASE * 4, setup.now, setup.now), None);
    assert!(hold.remaining(setup.now) > LEASE * 3);
    // An extension that is shorter than the rest of the lease changes nothing.
    assert_eq!(setup.engine.extended(&hold, SECOND, setup.now, setup.now), None);
    assert!(hold.remaining(setup.now) > LEASE * 3);
    setup.now = start + LEASE;
    assert_eq!(setup.engine.work(setup.now).cleanups.len(), 0);
    assert_eq!(hold.loss(setup.now), None);
    setup.now = start + LEASE * 5;
    let work = setup.engine.work(setup.now);
    assert_eq!(hold.loss(setup.now), Some(Loss::Expired));
    assert_eq!(work.cleanups[0].1.until, setup.now + LEASE * 4);
    assert_eq!(setup.engine.extended(&hold, LEASE, setup.now, setup.now), Some(Loss::Expired));
}

/// A ticket is stored beside the holds of its name, so none of them is stored short.
#[test]
fn permits_that_were_granted_from_the_queue_are_renewed_in_all_their_keys() {
    let setup = setup();
    let keys = |name| Arc::new(Keys::new("p", Kind::Semaphore { limit: 2 }, name).unwrap());
    let (at_once, waited) = (setup.holds(&keys("a")), setup.grant(setup.waits(&keys("b")), true));
    assert_eq!([at_once, waited].map(|hold| hold.renewed_by()), [Some("permit_renew_short"), Some("permit_renew")]);
}
