//! Tens of thousands of names, waiters and clean-ups.

use super::touched::{PATIENCE, failure};
use super::*;

/// More than anybody would wait for at once.
const NAMES: usize = 20_000;

/// The cap, spelled out: no more calls than this are to be under way.
const CAP: usize = 256;

#[test]
fn a_gap_with_many_names_touches_a_bounded_number_at_a_time() {
    let setup = setup();
    for name in 0..NAMES {
        setup.waits(&keys(&name.to_string()));
    }
    setup.ledger.gap(setup.now);
    let mut touched = 0;
    loop {
        let work = setup.ledger.work(setup.now);
        if work.touch.is_empty() {
            break;
        }
        assert!(work.touch.len() <= CAP, "{}", work.touch.len());
        touched += work.touch.len();
        if touched == CAP {
            let again = setup.ledger.work(setup.now);
            assert!(again.touch.is_empty(), "more than the cap");
            assert!(again.next.is_none_or(|at| at > setup.now), "it would look without end");
        }
        setup.answer(&work);
    }
    assert_eq!(touched, NAMES);
}

#[test]
fn clean_ups_go_in_order_a_bounded_number_at_a_time() {
    let setup = setup();
    let ids: Vec<_> = (0..1000).map(|name| setup.waits(&keys(&name.to_string()))).collect();
    ids.iter().for_each(|id| setup.ledger.abandon(*id, setup.now));
    let first = setup.ledger.work(setup.now);
    assert_eq!(first.cleanups.len(), CAP);
    let again = setup.ledger.work(setup.now);
    assert!(again.cleanups.is_empty() && again.next.is_none_or(|at| at > setup.now));
    // One that ends makes room for one.
    setup.ledger.cleanup_done(first.cleanups[3].0);
    setup.ledger.cleanup_done(first.cleanups[3].0);
    let one = setup.ledger.work(setup.now).cleanups;
    assert_eq!(one.len(), 1);
    let mut order = [first.cleanups.clone(), one].concat();
    first.cleanups.iter().for_each(|(n, _)| setup.ledger.cleanup_done(*n));
    loop {
        let work = setup.ledger.work(setup.now);
        if work.cleanups.is_empty() {
            break;
        }
        order.extend(work.cleanups.clone());
        setup.answer(&work);
    }
    let order: Vec<_> = order.into_iter().map(|(_, cleanup)| cleanup.ticket).collect();
    let expected: Vec<_> = ids.iter().map(|id| ticket(Kind::Lock, *id, LEASE, 1)).collect();
    assert_eq!(order, expected);
    assert!(setup.ledger.cleaned().now_or_never().is_none(), "one is not done");
}

/// A server that is gone for as long as the client's patience is gone for everybody, also for those whose turn to be touched
/// has not come.
#[test]
fn more_names_than_the_cap_are_told_that_the_server_is_away() {
    let mut setup = setup();
    let ids: Vec<_> = (0..1000).map(|name| setup.waits(&keys(&name.to_string()))).collect();
    setup.now += Duration::from_secs(1);
    setup.ledger.gap(setup.now);
    let gone = setup.now;
    let mut late = None;
    while setup.now <= gone + PATIENCE {
        assert!(ids.iter().all(|id| setup.outcome(*id).is_pending()), "after {:?}", setup.now - gone);
        let work = setup.ledger.work(setup.now);
        let sent = setup.now;
        setup.now += Duration::from_secs(3);
        late.get_or_insert_with(|| setup.waits(&keys("late")));
        for touch in work.touch {
            let ids: Vec<_> = touch.tickets.iter().map(|(id, ..)| *id).collect();
            setup.ledger.not_touched(&touch.keys, &ids, sent, setup.now, &failure(), PATIENCE);
        }
    }
    assert!(ids.iter().all(|id| matches!(setup.outcome(*id), Poll::Ready(Outcome::Failed(_)))));
    // It was answered after the others were.
    assert!(late.is_some_and(|late| setup.outcome(late).is_pending()));
}

/// One name's touches fail now and then, and all others are answered, or not asked about meanwhile.
#[test]
fn others_do_not_fail_for_one_names_failures() {
    let mut setup = setup();
    let (a, b) = (keys("a"), keys("b"));
    let ids = [setup.waits(&a), setup.waits(&b)];
    let fail = |setup: &Setup| {
        setup.ledger.not_touched(&a, &[ids[0].n], setup.now, setup.now, &failure(), PATIENCE * 9);
    };
    setup.now += PATIENCE;
    setup.ledger.gap(setup.now);
    let work = setup.ledger.work(setup.now);
    fail(&setup);
    setup.now += PATIENCE * 10;
    setup.ledger.work(setup.now);
    fail(&setup);
    assert!(setup.outcome(ids[1]).is_pending(), "it was not silent meanwhile");
    setup.answer(&work);
    assert!(setup.outcome(ids[1]).is_pending());
}
