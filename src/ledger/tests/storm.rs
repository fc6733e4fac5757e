//! Tens of thousands of names, waiters and clean-ups.

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
