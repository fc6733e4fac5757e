//! The tokens of retained holds.

use super::*;
use crate::engine::ahead::Ask;
use crate::protocol::reply::AskedAhead;

/// While others wait, as many guards as of any other grant.
#[test]
fn a_hold_that_is_wanted_serves_one_budget_more() {
    let mut retained = Retained::idles(LARGEST_BUDGET);
    retained.takes();
    retained.wanted();
    let mut served = 0;
    loop {
        let member = retained.setup.engine.join_asleep(&retained.cohort, 0).ok().unwrap();
        assert!(retained.ends(9 * SECOND));
        let context = Context::from_waker(Waker::noop());
        let turn = retained.setup.engine.poll_turn(&retained.cohort, member, retained.setup.now, &context);
        match turn {
            Poll::Ready(Ok((Ok(Turn::Held { hold, budget, .. }), _))) => {
                (retained.hold, retained.budget) = (hold, budget);
                served += 1;
            }
            // The request for the next budget is under way.
            Poll::Pending => {
                retained.setup.engine.leave(&retained.cohort, member, retained.setup.now);
                break;
            }
            turn => panic!("{turn:?}"),
        }
    }
    assert_eq!(served, HANDOFF_BUDGET - 1);
    retained.setup.assert_empty();
}

/// The request that is sent when half of the tokens are used.
fn asked(retained: &Retained) -> Ask {
    let mut work = retained.setup.engine.work(retained.setup.now);
    assert_eq!(work.ahead.len(), 1);
    work.ahead.remove(0)
}

#[test]
fn the_next_tokens_are_asked_for_while_the_hold_is_idle() {
    let mut retained = Retained::idles(2);
    let ask = asked(&retained);
    let granted = AskedAhead::Granted { token: Token::new(50), now: 1 };
    retained.setup.engine.ahead_answered(&ask, Some(granted), retained.setup.now, retained.setup.now);
    assert_eq!(retained.takes(), Token::new(2));
    assert!(retained.ends(SECOND) && retained.takes() == Token::new(50), "the first of the next ones");
    assert_eq!(retained.budget.next(), HANDOFF_BUDGET, "as many as before, but not fewer than usual");
    retained.wanted();
    retained.releases();
    // Without them, the last guard releases.
    let mut retained = Retained::idles(2);
    asked(&retained);
    retained.takes();
    retained.releases();
}

#[test]
fn a_hold_for_which_others_wait_as_the_next_tokens_are_asked_for_is_released() {
    for (n, is_idle) in [true, false].into_iter().enumerate() {
        // Two tokens are left.
        let mut retained = Retained::idles(4);
        let ask = asked(&retained);
        if !is_idle {
            retained.takes();
        }
        let queued = Some(AskedAhead::Queued { now: 1 });
        retained.setup.engine.ahead_answered(&ask, queued, retained.setup.now, retained.setup.now);
        if is_idle {
            assert_eq!(retained.cancelled(retained.setup.now), [retained.hold.id, ask.attempt.unwrap()], "{n}");
            retained.setup.assert_empty();
        } else {
            retained.releases();
        }
    }
}

/// However long the lock was idle.
#[test]
fn the_time_of_a_budget_begins_when_an_idle_hold_is_taken() {
    let mut retained = Retained::idles(9);
    retained.setup.now += 2 * SECOND;
    retained.takes();
    let waits = retained.setup.engine.join_asleep(&retained.cohort, 0).ok().unwrap();
    assert!(retained.ends(9 * SECOND));
    let context = Context::from_waker(Waker::noop());
    let turn = retained.setup.engine.poll_turn(&retained.cohort, waits, retained.setup.now, &context);
    assert!(matches!(turn, Poll::Ready(Ok((Ok(Turn::Held { was_idle: false, .. }), _)))), "{turn:?}");
    drop(turn);
    retained.setup.engine.release(&retained.hold, retained.setup.now);
    retained.setup.assert_empty();
}

#[test]
fn a_cohort_that_queues_up_again_retains_its_next_hold_too() {
    let mut retained = retained(1);
    let waits = retained.setup.engine.join_asleep(&retained.cohort, 0).ok().unwrap();
    assert!(retained.ends(9 * SECOND));
    let context = Context::from_waker(Waker::noop());
    let turn = retained.setup.engine.poll_turn(&retained.cohort, waits, retained.setup.now, &context);
    let Poll::Ready(Ok((Ok(Turn::Attempt(next)), _))) = turn else { panic!("{turn:?}") };
    assert!(next.id.is_retained() && next.amount == LARGEST_BUDGET, "{next:?}");
    retained.setup.engine.abandon(next.id, retained.setup.now);
    retained.setup.engine.leave(&retained.cohort, waits, retained.setup.now);
    retained.setup.assert_empty();
}

/// Tokens that were granted ahead do not change that.
#[test]
fn without_a_hand_off_time_a_hold_is_kept_and_not_handed_to_a_member_that_waits() {
    let mut retained = retained(2);
    let claim = Kind::Lock.claim(2);
    retained.budget = HandoffBudget::of(claim, retained.hold.token(), retained.setup.now, Duration::ZERO);
    assert!(retained.ends(9 * SECOND));
    let granted = AskedAhead::Granted { token: Token::new(50), now: 1 };
    let ask = asked(&retained);
    retained.setup.engine.ahead_answered(&ask, Some(granted), retained.setup.now, retained.setup.now);
    assert_eq!(retained.takes(), Token::new(2));
    let waits = retained.setup.engine.join_asleep(&retained.cohort, 0).ok().unwrap();
    assert!(retained.ends(9 * SECOND));
    let context = Context::from_waker(Waker::noop());
    let turn = retained.setup.engine.poll_turn(&retained.cohort, waits, retained.setup.now, &context);
    let Poll::Ready(Ok((Ok(Turn::Attempt(next)), _))) = turn else { panic!("{turn:?}") };
    retained.setup.engine.abandon(next.id, retained.setup.now);
    retained.setup.engine.leave(&retained.cohort, waits, retained.setup.now);
    retained.setup.assert_empty();
}
