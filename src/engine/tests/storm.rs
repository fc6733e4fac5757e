//! Tens of thousands of names, waiters and clean-ups.

use super::heartbeat_reply::{RETRY_TIMEOUT, failure};
use super::*;

/// More names than any program waits for at the same time.
const NAMES: usize = 20_000;

/// The most calls that may be under way, written out here on purpose.
const CAP: usize = 256;

#[test]
fn a_gap_with_many_names_heartbeats_a_bounded_number_at_a_time() {
    let setup = setup();
    for name in 0..NAMES {
        setup.waits(&keys(&name.to_string()));
    }
    setup.engine.gap(setup.now);
    let mut heartbeat_reply = 0;
    loop {
        let work = setup.engine.work(setup.now);
        if work.heartbeat.is_empty() {
            break;
        }
        assert!(work.heartbeat.len() <= CAP, "{}", work.heartbeat.len());
        heartbeat_reply += work.heartbeat.len();
        if heartbeat_reply == CAP {
            let again = setup.engine.work(setup.now);
            assert!(again.heartbeat.is_empty(), "more than the cap");
            assert!(again.next.is_none_or(|at| at > setup.now), "it would look without end");
        }
        setup.answer(&work);
    }
    assert_eq!(heartbeat_reply, NAMES);
}

#[test]
fn clean_ups_go_in_order_a_bounded_number_at_a_time() {
    let setup = setup();
    let ids: Vec<_> = (0..1000).map(|name| setup.waits(&keys(&name.to_string()))).collect();
    ids.iter().for_each(|id| setup.engine.abandon(*id, setup.now));
    let first = setup.engine.work(setup.now);
    assert_eq!(first.cleanups.len(), CAP);
    let again = setup.engine.work(setup.now);
    assert!(again.cleanups.is_empty() && again.next.is_none_or(|at| at > setup.now));
    // Each call that ends makes room for one.
    setup.engine.cleanup_done(first.cleanups[3].0, false);
    setup.engine.cleanup_done(first.cleanups[3].0, false);
    let one = setup.engine.work(setup.now).cleanups;
    assert_eq!(one.len(), 1);
    let mut order = [first.cleanups.clone(), one].concat();
    first.cleanups.iter().for_each(|(n, _)| setup.engine.cleanup_done(*n, false));
    loop {
        let work = setup.engine.work(setup.now);
        if work.cleanups.is_empty() {
            break;
        }
        order.extend(work.cleanups.clone());
        setup.answer(&work);
    }
    let order: Vec<_> = order.into_iter().map(|(_, cleanup)| cleanup.ticket).collect();
    let expected: Vec<_> = ids.iter().map(|id| Kind::Lock.ticket(*id, LEASE, 1)).collect();
    assert_eq!(order, expected);
    assert!(setup.engine.cleaned().now_or_never().is_none(), "one is not done");
}

/// A server that has been silent for the client's retry timeout fails every attempt, also those whose heartbeat was not
/// due yet.
#[test]
fn more_names_than_the_cap_are_told_that_the_server_is_away() {
    let mut setup = setup();
    let ids: Vec<_> = (0..1000).map(|name| setup.waits(&keys(&name.to_string()))).collect();
    setup.now += Duration::from_secs(1);
    setup.engine.gap(setup.now);
    let gone = setup.now;
    let mut late = None;
    while setup.now <= gone + RETRY_TIMEOUT {
        assert!(ids.iter().all(|id| setup.outcome(*id).is_pending()), "after {:?}", setup.now - gone);
        let work = setup.engine.work(setup.now);
        let sent = setup.now;
        setup.now += Duration::from_secs(3);
        late.get_or_insert_with(|| setup.waits(&keys("late")));
        for heartbeat in work.heartbeat {
            let ids: Vec<_> = heartbeat.tickets.iter().map(|(id, ..)| *id).collect();
            setup.engine.heartbeat_failed(&heartbeat.keys, &ids, sent, setup.now, &failure(), RETRY_TIMEOUT);
        }
    }
    assert!(ids.iter().all(|id| matches!(setup.outcome(*id), Poll::Ready(Outcome::Failed(..)))));
    // This attempt was answered after the others.
    assert!(late.is_some_and(|late| setup.outcome(late).is_pending()));
}

/// Heartbeats of one name fail now and then. Those of all others are answered, or none is due meanwhile.
#[test]
fn others_do_not_fail_for_one_names_failures() {
    let mut setup = setup();
    let (a, b) = (keys("a"), keys("b"));
    let ids = [setup.waits(&a), setup.waits(&b)];
    let fail = |setup: &Setup| {
        setup.engine.heartbeat_failed(&a, &[ids[0].n], setup.now, setup.now, &failure(), RETRY_TIMEOUT * 9);
    };
    setup.now += RETRY_TIMEOUT;
    setup.engine.gap(setup.now);
    let work = setup.engine.work(setup.now);
    fail(&setup);
    setup.now += RETRY_TIMEOUT * 10;
    setup.engine.work(setup.now);
    fail(&setup);
    assert!(setup.outcome(ids[1]).is_pending(), "it was not silent meanwhile");
    setup.answer(&work);
    assert!(setup.outcome(ids[1]).is_pending());
}
