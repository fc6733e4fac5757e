//! Tickets that are queued ahead, because others wait.

use super::*;
use crate::protocol::dispatch::Place;

#[test]
fn a_ticket_queued_ahead_is_the_cohorts_once_the_hold_ends() {
    let cohort = cohort(Kind::Lock, 3);
    let (mut hold, budget, ask) = cohort.asks();
    cohort.answer(&ask, QUEUED);
    // The owner releases, because no token is left and the ticket waits.
    assert!(!cohort.hand_off(&mut hold, budget));
    assert!(cohort.poll(1).is_none());
    let grant = Outcome::Granted { token: NEXT, counted_from: cohort.setup.now };
    cohort.setup.engine.change(|state| state.handoff_handler().decide(ask.attempt.unwrap(), grant, cohort.setup.now));
    match cohort.poll(1) {
        Some(Turn::Attempt(handoff)) => assert!(handoff.id == ask.attempt.unwrap() && handoff.is_decided),
        turn => panic!("{turn:?}"),
    }
    cohort.setup.engine.drop_pending(ask.attempt.unwrap(), None, cohort.setup.now);
    cohort.ends(&hold);
}

/// The cohort has used up its budget early. The next budget is larger if it is granted at once, and small if the ticket
/// has to wait.
#[test]
fn a_ticket_queued_ahead_asks_for_no_more_than_others_may_have() {
    let mut cohort = cohort(Kind::Lock, 4);
    let (mut hold, budget, ask) = cohort.asks();
    assert!(cohort.hand_off(&mut hold, budget));
    cohort.answer(&ask, GRANTED);
    let (mut hold, budget) = cohort.held(1);
    cohort.setup.now += SECOND / 2;
    assert!(cohort.hand_off(&mut hold, budget));
    let ask = cohort.setup.engine.work(cohort.setup.now).ahead.remove(0);
    let args = ask.args(0);
    let Place::Next(ticket) = args.place else { panic!("it has tickets") };
    assert_eq!((args.budget, ticket.claim), (2 * HANDOFF_BUDGET, Claim::Tokens(HANDOFF_BUDGET)));
    let (mut hold, budget) = cohort.held(2);
    cohort.answer(&ask, QUEUED);
    cohort.setup.now += SECOND;
    assert!(!cohort.hand_off(&mut hold, budget), "its time is over");
    let (id, grant) = (ask.attempt.unwrap(), Outcome::Granted { token: NEXT, counted_from: cohort.setup.now });
    cohort.setup.engine.change(|state| state.handoff_handler().decide(id, grant, cohort.setup.now));
    match cohort.poll(3) {
        Some(Turn::Attempt(handoff)) => assert_eq!((handoff.id, handoff.amount), (id, HANDOFF_BUDGET)),
        turn => panic!("{turn:?}"),
    }
    cohort.setup.engine.drop_pending(id, None, cohort.setup.now);
    cohort.ends(&hold);
}
