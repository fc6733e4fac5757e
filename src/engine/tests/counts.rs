//! Special cases of [`Stats`].

use super::*;

fn counted(setup: &Setup) -> [u64; 6] {
    let Stats { held, waiting, acquired, passed_on, renewals, lost, .. } = setup.engine.stats();
    [held, waiting, acquired, passed_on, renewals, lost]
}

#[test]
fn of_a_cohort_waiting_members_count_and_not_their_tickets() {
    let setup = setup();
    let a = keys("a");
    let cohort = CohortId::of(&a, 1);
    let join = || setup.engine.join_asleep(&cohort, 0).ok().unwrap();
    let first = join();
    assert_eq!(counted(&setup), [0; 6], "it has not asked");
    let handoff = setup.engine.open_in_cohort(&a, first, (1, false), LEASE, setup.now).unwrap();
    assert_eq!(counted(&setup), [0, 1, 0, 0, 0, 0]);
    let second = join();
    assert_eq!(counted(&setup), [0, 2, 0, 0, 0, 0]);
    let queued = Queued { sent: setup.now, asked: 1, holder_left: Some(LEASE), call_again: false };
    assert!(setup.engine.queued(handoff.id, queued, setup.now), "it is the cohort's");
    assert_eq!(counted(&setup), [0, 2, 0, 0, 0, 0]);
    // An acquisition that waits outside the cohort.
    let beside = setup.waits(&a);
    assert_eq!(counted(&setup), [0, 3, 0, 0, 0, 0]);
    setup.engine.leave(&cohort, second, setup.now);
    assert_eq!(counted(&setup), [0, 2, 0, 0, 0, 0]);
    setup.engine.leave(&cohort, first, setup.now);
    assert_eq!(counted(&setup), [0, 1, 0, 0, 0, 0], "its ticket is given up");
    setup.engine.forget(beside);
    setup.assert_empty();
}

#[test]
fn what_is_passed_on_is_acquired_and_held_once() {
    let setup = setup();
    let a = keys("a");
    let cohort = CohortId::of(&a, 1);
    let first = setup.engine.join_asleep(&cohort, 0).ok().unwrap();
    let second = setup.engine.join_asleep(&cohort, 0).ok().unwrap();
    let handoff = setup.engine.open_in_cohort(&a, first, (1, false), LEASE, setup.now).unwrap();
    assert_eq!(handoff.amount, HANDOFF_BUDGET, "with tokens for those who wait");
    let hold = setup
        .engine
        .hold(handoff.id, handoff.amount, Token::new(1), Term::Renewed, setup.now + LEASE, setup.now)
        .unwrap();
    assert_eq!(counted(&setup), [1, 1, 1, 0, 0, 0]);
    let budget = HandoffBudget::of(Kind::Lock.claim(hold.amount), hold.token(), setup.now, LEASE);
    assert!(setup.engine.hand_off(&cohort, &mut hold.clone(), budget, None, setup.now));
    assert_eq!(counted(&setup), [1, 0, 1, 0, 0, 0], "no member has looked at it");
    let turn = setup.engine.poll_turn(&cohort, second, setup.now, &Context::from_waker(std::task::Waker::noop()));
    let Poll::Ready(Ok((Ok(Turn::Held { hold, .. }), _))) = turn else { panic!("{turn:?}") };
    assert_eq!(counted(&setup), [1, 0, 2, 1, 0, 0]);
    setup.engine.release(&hold, setup.now);
    setup.assert_empty();
}

/// Its next holder would have no time to use it.
#[test]
fn a_hold_with_little_of_its_lease_left_is_not_passed_on() {
    for (left, passed) in [(LEASE * 2 / 3, true), (LEASE / 2, false), (Duration::from_millis(3), false)] {
        let setup = setup();
        let a = keys("a");
        let cohort = CohortId::of(&a, 1);
        let first = setup.engine.join_asleep(&cohort, 0).ok().unwrap();
        let second = setup.engine.join_asleep(&cohort, 0).ok().unwrap();
        let handoff = setup.engine.open_in_cohort(&a, first, (1, false), LEASE, setup.now).unwrap();
        let hold = setup
            .engine
            .hold(handoff.id, handoff.amount, Token::new(1), Term::Renewed, setup.now + left, setup.now)
            .unwrap();
        let budget = HandoffBudget::of(Kind::Lock.claim(hold.amount), hold.token(), setup.now, LEASE);
        assert!(setup.engine.hand_off(&cohort, &mut hold.clone(), budget, None, setup.now));
        let turn = setup.engine.poll_turn(&cohort, second, setup.now, &Context::from_waker(std::task::Waker::noop()));
        match turn {
            Poll::Ready(Ok((Ok(Turn::Held { .. }), _))) => assert!(passed, "with {left:?} left"),
            Poll::Ready(Ok((Ok(Turn::Attempt(handoff)), _))) => {
                assert!(!passed && handoff.before.is_some_and(|before| before.id == hold.id), "with {left:?} left");
            }
            turn => panic!("{turn:?}"),
        }
    }
}

#[test]
fn losses_are_counted_but_not_what_is_closed() {
    let mut setup = setup();
    let holds: Vec<_> = ["a", "b", "c", "d"].iter().map(|name| setup.holds(&keys(name))).collect();
    assert_eq!(counted(&setup), [4, 0, 4, 0, 0, 0]);
    setup.engine.renewed(setup.now, setup.now, &holds[..1], &holds[1..2]);
    assert_eq!(counted(&setup), [3, 0, 4, 0, 1, 1]);
    // A loss that is reported twice counts once.
    setup.engine.renewed(setup.now, setup.now, &[], &holds[1..2]);
    setup.engine.deliver(crate::protocol::message::Message::Revoked { id: holds[2].id }, setup.now);
    assert_eq!(counted(&setup), [2, 0, 4, 0, 1, 2]);
    // Fixed leases are verified but not renewed.
    let fixed = setup.grant(setup.open(&keys("e")), false);
    setup.engine.renewed(setup.now, setup.now, &[fixed], &[]);
    assert_eq!(counted(&setup), [3, 0, 5, 0, 1, 2]);
    setup.now += Duration::from_secs(1);
    setup.engine.close(setup.now);
    assert_eq!(counted(&setup), [0, 0, 5, 0, 1, 2]);
    setup.assert_empty();
}

/// The watchdog is woken for a hold that is due before all others so far. When a hold is due is random within bounds.
#[test]
fn holds_that_come_and_go_do_not_wake_the_watchdog() {
    let mut setup = setup();
    let come_and_go = |setup: &Setup| {
        let hold = setup.holds(&keys("a"));
        hold.release(setup.now).unwrap();
        setup.engine.release(&hold, setup.now);
    };
    let mut wakes = 0;
    for _ in 0..100 {
        let woken = setup.engine.listen();
        come_and_go(&setup);
        if woken.now_or_never().is_some() {
            wakes += 1;
            setup.engine.work(setup.now);
        }
        setup.now += Duration::from_millis(1);
    }
    assert!((1..20).contains(&wakes), "{wakes}");
    setup.now = setup.engine.work(setup.now).next.unwrap();
    assert_eq!(setup.engine.work(setup.now).next, None, "no timer without holds");
    setup.assert_empty();
}
