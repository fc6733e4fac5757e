//! Writers ask ahead.

use super::*;
use crate::protocol::dispatch::{AheadArgs, Place};
use crate::protocol::limits::WRITE;
use crate::protocol::ticket::Claim;

/// The ticket is for all units, however many guards the budget is to serve.
#[test]
fn a_writer_asks_ahead_for_all_units() {
    let cohort = cohort_with(Kind::ReadWrite, WRITE, 2);
    assert!(cohort.hand_off_first(small_budget(&cohort)));
    let asks = cohort.setup.engine.work(cohort.setup.now).ahead;
    let [ask] = &asks[..] else { panic!("{asks:?}") };
    let AheadArgs { held, known, budget, place: Place::Next(ticket), .. } = ask.args(0) else { panic!("{ask:?}") };
    assert_eq!((held, known, budget), (cohort.hold.id, Token::new(1), HANDOFF_BUDGET));
    assert_eq!(ticket.claim, Claim::Units { units: WRITE, limit: WRITE });
    cohort.answer(ask, GRANTED);
    let (mut hold, budget) = cohort.held(0);
    assert!(cohort.hand_off(&mut hold, budget));
    assert_eq!(cohort.held(1).0.token(), NEXT);
    cohort.ends(&hold);
}

/// The ticket names all units, and not the guards of the budget, so the engine finds the cohort when it is granted.
#[test]
fn a_writers_ticket_queued_ahead_is_its_cohorts() {
    for is_granted_first in [false, true] {
        let cohort = cohort_with(Kind::ReadWrite, WRITE, 2);
        assert!(cohort.hand_off_first(small_budget(&cohort)));
        let asks = cohort.setup.engine.work(cohort.setup.now).ahead;
        let (mut hold, budget) = cohort.held(0);
        cohort.answer(&asks[0], QUEUED);
        let granted = || {
            let grant = Outcome::Granted { token: NEXT, counted_from: cohort.setup.now };
            cohort
                .setup
                .engine
                .change(|state| state.handoff_handler().decide(asks[0].attempt.unwrap(), grant, cohort.setup.now));
        };
        if is_granted_first {
            granted();
        }
        assert!(!cohort.hand_off(&mut hold, budget), "the owner releases");
        if !is_granted_first {
            assert!(cohort.poll(1).is_none());
            granted();
        }
        let Some(Turn::Attempt(handoff)) = cohort.poll(1) else { panic!("no member was given the granted ticket") };
        assert!(handoff.id == asks[0].attempt.unwrap() && handoff.is_decided);
        cohort.setup.engine.drop_pending(handoff.id, None, cohort.setup.now);
        cohort.ends(&hold);
    }
}
