//! Holds that are handed off from one member of a cohort to the next.

use std::pin::pin;

use super::cohort::{Cohort, SECOND, cohort};
use super::*;

const SEMAPHORE: Kind = Kind::Semaphore { limit: 1 };

impl Cohort {
    #[track_caller]
    fn attempt(&self, other: usize) -> AttemptHandoff {
        match self.poll(other) {
            Some(Turn::Attempt(handoff)) => handoff,
            turn => panic!("{turn:?}"),
        }
    }
}

#[test]
fn a_lock_is_handed_off_while_tokens_are_left() {
    let cohort = cohort(Kind::Lock, 2, 2);
    assert!(cohort.hand_off_first(cohort.budget()));
    let (hold, budget) = cohort.held(0);
    assert_eq!(hold.token(), Token::new(2));
    assert!(budget.spend(false, cohort.setup.now).is_none());
}

#[test]
fn a_hold_that_nobody_watches_is_handed_off_in_place() {
    let Cohort { setup, id, others, mut hold } = cohort(Kind::Lock, 3, 2);
    let budget = HandoffBudget::of(hold.keys.kind.claim(hold.amount), hold.token(), setup.now, SECOND);
    let deadline = hold.deadline();
    assert!(setup.engine.hand_off(&id, &mut hold, budget, None, setup.now));
    let cohort = Cohort { setup, id, others, hold };
    let (mut next, budget) = cohort.held(0);
    assert!(Arc::ptr_eq(&next, &cohort.hold));
    assert_eq!((next.token(), next.deadline()), (Token::new(2), deadline));
    // `cohort.hold` watches it now.
    assert!(cohort.hand_off(&mut next, budget));
    let (last, _) = cohort.held(1);
    assert_eq!((last.token(), last.deadline()), (Token::new(3), deadline));
    assert_eq!((next.token(), next.deadline()), (Token::new(2), None), "it is over");
}

#[test]
fn who_watches_a_hold_is_not_told_of_the_next_ones_loss() {
    let cohort = cohort(Kind::Lock, 9, 1);
    let mut lost = pin!(cohort.hold.lost());
    let mut over = pin!(cohort.hold.over());
    let context = &mut Context::from_waker(Waker::noop());
    assert!(lost.as_mut().poll(context).is_pending() && over.as_mut().poll(context).is_pending());
    assert!(cohort.hand_off_first(cohort.budget()));
    assert_eq!(over.as_mut().poll(context), Poll::Ready(None));
    let (next, _) = cohort.held(0);
    cohort.setup.engine.close(cohort.setup.now);
    assert_eq!(next.loss(cohort.setup.now), Some(Loss::Closed));
    assert!(lost.as_mut().poll(context).is_pending());
}

#[test]
fn a_lock_with_one_token_is_not_handed_off() {
    let cohort = cohort(Kind::Lock, 1, 1);
    assert!(cohort.hand_off_first(cohort.budget()));
    // The next request reserves tokens for a whole budget, because others may come.
    let handoff = cohort.attempt(0);
    assert_eq!((handoff.amount, handoff.before.unwrap().id), (HANDOFF_BUDGET, cohort.hold.id));
}

/// A server that replaces this one may still have it.
#[test]
fn a_hold_that_a_granted_request_has_ended_is_ended_again_after_a_gap() {
    let cohort = cohort(Kind::Lock, 1, 1);
    assert!(cohort.hand_off_first(cohort.budget()));
    let (handoff, setup) = (cohort.attempt(0), &cohort.setup);
    let until = setup.now + LEASE;
    let held = setup.engine.hold(handoff.id, handoff.amount, Token::new(2), Term::Renewed, until, setup.now);
    assert!(held.is_some());
    let cleaned = || {
        let work = setup.engine.work(setup.now);
        setup.answer(&work);
        work.cleanups.iter().map(|(_, cleanup)| cleanup.ticket.id).collect::<Vec<_>>()
    };
    assert_eq!(cleaned(), []);
    setup.engine.gap(setup.now);
    assert_eq!(cleaned(), [cohort.hold.id]);
}

#[test]
fn a_permit_is_handed_off_whatever_its_amount() {
    // The first of the others asks, because an operator may have set a larger limit.
    let cohort = cohort(SEMAPHORE, 1, 2);
    assert!(cohort.hand_off_first(cohort.budget()));
    cohort.held(1);
}

#[test]
fn a_permit_is_asked_for_again_in_the_same_amount() {
    let mut cohort = cohort(SEMAPHORE, 1, 2);
    let budget = cohort.budget();
    cohort.setup.now += SECOND;
    assert!(cohort.hand_off_first(budget));
    assert_eq!(cohort.attempt(1).amount, 1);
}

#[test]
fn a_hold_is_handed_off_until_the_time_is_over() {
    for (after, in_time) in [(SECOND - Duration::from_nanos(1), true), (SECOND, false)] {
        let mut cohort = cohort(Kind::Lock, 9, 1);
        let budget = cohort.budget();
        cohort.setup.now += after;
        assert!(cohort.hand_off_first(budget));
        match cohort.poll(0) {
            Some(Turn::Held { .. }) => assert!(in_time, "after {after:?}"),
            Some(Turn::Attempt(_)) => assert!(!in_time, "after {after:?}"),
            turn => panic!("{turn:?} after {after:?}"),
        }
    }
}

/// With half of the lease or less, the next member asks the server: it could not rely on a renewal in time.
#[test]
fn a_hold_is_handed_off_with_more_than_half_of_its_lease() {
    for (left, enough) in [(LEASE / 2 + Duration::from_nanos(1), true), (LEASE / 2, false)] {
        let mut cohort = cohort(Kind::Lock, 9, 1);
        cohort.setup.now += LEASE - left;
        assert!(cohort.hand_off_first(cohort.budget()));
        match cohort.poll(0) {
            Some(turn) => assert_eq!(matches!(turn, Turn::Held { .. }), enough, "with {left:?}"),
            None => panic!("no turn was given with {left:?}"),
        }
    }
}

#[test]
fn without_a_waiting_member_the_owner_releases_the_hold() {
    let cohort = cohort(Kind::Lock, 9, 0);
    assert!(!cohort.hand_off_first(cohort.budget()));
    assert!(cohort.hold.deadline().is_some());
    assert!(cohort.setup.engine.work(cohort.setup.now).cleanups.is_empty());
}

#[test]
fn a_hold_is_renewed_again_once_the_next_member_has_it() {
    let mut cohort = cohort(Kind::Lock, 9, 1);
    assert!(cohort.hand_off_first(cohort.budget()));
    let renewed = |cohort: &Cohort| cohort.setup.engine.work(cohort.setup.now + LEASE / 3).renew.len();
    assert_eq!(renewed(&cohort), 0, "the member has not looked at it");
    cohort.setup.now += SECOND;
    cohort.held(0);
    cohort.setup.now += LEASE / 3;
    assert_eq!(renewed(&cohort), 1);
}

/// The former hold is removed first, so that a late copy of the request finds nothing to release.
#[test]
fn an_attempt_that_was_handed_on_and_dropped_is_cleaned_up_with_the_hold_before_it() {
    let cohort = cohort(Kind::Lock, 1, 1);
    let now = cohort.setup.now;
    assert!(cohort.hand_off_first(cohort.budget()));
    let handoff = cohort.attempt(0);
    cohort.setup.engine.leave(&cohort.id, cohort.others[0], now);
    cohort.setup.engine.drop_pending(handoff.id, None, now);
    let work = cohort.setup.engine.work(now);
    let cleanups: Vec<_> = work.cleanups.iter().map(|(_, cleanup)| cleanup.ticket).collect();
    let ticket = |id, amount| Kind::Lock.ticket(id, LEASE, amount);
    assert_eq!(cleanups, [ticket(cohort.hold.id, cohort.hold.amount), ticket(handoff.id, handoff.amount)]);
}

/// After a gap, another server may answer that still has the hold. Without a gap, the hold is released once.
#[test]
fn a_hold_that_is_released_before_an_attempt_goes_on_is_released_again_after_a_gap() {
    for is_told in [true, false] {
        let cohort = cohort(Kind::Redisson { fenced: true }, 1, 1);
        let (engine, now) = (&cohort.setup.engine, cohort.setup.now);
        assert!(cohort.hand_off_first(cohort.budget()));
        let handoff = cohort.attempt(0);
        if is_told {
            engine.released_before(handoff.id, now);
        }
        let due = || {
            let work = engine.work(now);
            cohort.setup.answer(&work);
            work.cleanups.iter().map(|(_, cleanup)| (cleanup.ticket.id, cleanup.is_repeated)).collect::<Vec<_>>()
        };
        engine.gap(now);
        assert_eq!(due(), if is_told { vec![(cohort.hold.id, true)] } else { vec![] });
        engine.leave(&cohort.id, cohort.others[0], now);
        engine.drop_pending(handoff.id, None, now);
        let given_up = (handoff.id, false);
        assert_eq!(due(), if is_told { vec![given_up] } else { vec![(cohort.hold.id, false), given_up] });
    }
}

/// The reply may have had the message of a grant, and the next member may not be polled.
#[test]
fn tickets_of_the_name_are_asked_about_when_a_request_that_releases_is_dropped() {
    let cohort = cohort(Kind::Lock, 1, 2);
    let (setup, keys) = (&cohort.setup, cohort.hold.keys.clone());
    let fair = setup.waits(&keys);
    assert!(cohort.hand_off_first(cohort.budget()));
    let handoff = cohort.attempt(0);
    assert!(setup.engine.work(setup.now).heartbeat.is_empty());
    setup.engine.drop_pending(handoff.id, None, setup.now);
    setup.engine.leave(&cohort.id, cohort.others[0], setup.now);
    let heartbeat = setup.engine.work(setup.now).heartbeat;
    let asked: Vec<_> = heartbeat.iter().flat_map(|heartbeat| &heartbeat.tickets).map(|(n, _)| *n).collect();
    assert_eq!(asked, [fair.n]);
    assert_eq!(cohort.attempt(1).id, handoff.id, "the next member continues it");
}
