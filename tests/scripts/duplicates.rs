//! Every script may be sent twice: the second, late copy changes nothing.

use crate::lab::{
    Acquired, Around, CANCEL_GONE, CANCEL_RELEASED, CANCELLED, Forced, Lab, NOT_HELD, RELEASED, Released, State,
    attempt,
};

/// A refresh moves expiry times by the time between the two copies.
const REFRESH: u64 = 5_000;

#[test]
fn acquire_granted() {
    for mode in ["try", "wait"] {
        let mut lab = Lab::new();
        let (first, second) = lab.twice(REFRESH, |lab| lab.acquire_as(mode, &attempt(1, 1)).unwrap());
        assert_eq!(first, second);
    }
}

#[test]
fn acquire_queued() {
    let (mut lab, _, _) = Lab::held();
    lab.acquire(&attempt(2, 1));
    let (first, second) = lab.twice(REFRESH, |lab| lab.acquire(&attempt(3, 1)).queued());
    assert_eq!((first, second), (2, 2));
}

#[test]
fn acquire_busy_full_and_stale() {
    let (mut lab, _, _) = Lab::held();
    lab.acquire(&attempt(2, 1));
    lab.twice(0, |lab| lab.try_acquire(&attempt(3, 1)).busy());
    let full = lab.twice(0, |lab| lab.acquire(&attempt(3, 1).max_waiters(1)));
    assert_eq!(full, (Acquired::Full(1), Acquired::Full(1)));
    let stale = lab.twice(0, |lab| lab.acquire(&attempt(3, 1).not_after(1)));
    assert_eq!(stale, (Acquired::Stale, Acquired::Stale));
}

/// The copy of an acquisition that is over comes after its `not_after`.
#[test]
fn acquire_after_its_release() {
    let mut lab = Lab::new();
    let a = attempt(1, 1);
    let in_time = a.clone().not_after(lab.now() + 60_000);
    lab.acquire(&in_time).token();
    lab.release(&a);
    let stale = lab.twice(0, |lab| lab.acquire(&attempt(1, 1).not_after(1)));
    assert_eq!(stale.0, Acquired::Stale);
    lab.assert_free();
}

#[test]
fn release() {
    let (mut lab, a, _) = Lab::held();
    assert_eq!(lab.twice(0, |lab| lab.release(&a)), (RELEASED, NOT_HELD));
    let (mut lab, a, _) = Lab::held();
    let (b, c) = (attempt(2, 1), attempt(3, 1));
    lab.listen(2);
    lab.acquire(&b);
    lab.acquire(&c);
    assert_eq!(lab.twice(0, |lab| lab.release(&a)), (RELEASED, NOT_HELD));
    lab.assert_holder(&b);
}

#[test]
fn release_with_a_ticket() {
    let (mut lab, a, _) = Lab::held();
    let next = attempt(1, 2);
    let (first, second) = lab.twice(0, |lab| lab.release_for(&a, &next));
    assert!(matches!(first, Released::Granted(_)));
    assert_eq!(second, NOT_HELD);
    // The copy arrives long after the hold has ended.
    lab.release(&next);
    assert_eq!(lab.twice(0, |lab| lab.release_for(&a, &next)), (NOT_HELD, NOT_HELD));
    lab.assert_free();

    let (mut lab, a, _) = Lab::held();
    let b = attempt(2, 1);
    lab.listen(2);
    lab.acquire(&b);
    assert_eq!(lab.twice(0, |lab| lab.release_for(&a, &next)), (RELEASED, NOT_HELD));
    lab.assert_queue(&[&next]);
}

#[test]
fn cancel() {
    let (mut lab, a, _) = Lab::held();
    let (b, c, d) = (attempt(2, 1), attempt(3, 1), attempt(4, 1));
    lab.listen(3);
    for waiter in [&b, &c, &d] {
        lab.acquire(waiter);
    }
    assert_eq!(lab.twice(0, |lab| lab.cancel(&b)), (CANCELLED, CANCEL_GONE));
    assert_eq!(lab.twice(0, |lab| lab.cancel(&a)), (CANCEL_RELEASED, CANCEL_GONE));
    lab.assert_holder(&c);
    assert_eq!(lab.twice(0, |lab| lab.cancel(&a)), (CANCEL_GONE, CANCEL_GONE));
}

#[test]
fn heartbeat() {
    let (mut lab, a, token) = Lab::held();
    let (b, c) = (attempt(2, 1), attempt(2, 2));
    lab.acquire(&b);
    lab.acquire(&c);
    let (first, second) = lab.twice(REFRESH, |lab| lab.heartbeat(&[&a, &b, &c, &attempt(5, 1)]).states);
    assert_eq!(first, second);
    assert_eq!(first, [State::Granted(token), State::Waiting, State::Waiting, State::Gone]);
    lab.release(&a);
    let (first, second) = lab.twice(REFRESH, |lab| lab.heartbeat(&[&b, &c]).states);
    assert_eq!(first, second);
    assert!(matches!(first[..], [State::Granted(_), State::Waiting]));
    // After both attempts have ended, a late copy revives neither.
    lab.cancel(&c);
    lab.cancel(&b);
    let gone = lab.twice(0, |lab| lab.heartbeat(&[&b, &c]).states);
    assert_eq!(gone.0, [State::Gone, State::Gone]);
    lab.assert_free();
}

#[test]
fn renew() {
    let (mut lab, a, _) = Lab::held();
    assert_eq!(lab.twice(REFRESH, |lab| lab.renew_one(&a)), (1, 1));
    lab.release(&a);
    assert_eq!(lab.twice(0, |lab| lab.renew_one(&a)), (0, 0));
}

#[test]
fn force_release() {
    let (mut lab, a, _) = Lab::held();
    let (first, second) = lab.twice(0, |lab| lab.force_release(&a));
    assert!(matches!(first, Forced::Released { .. }));
    assert_eq!(second, Forced::NotHeld { more: false });
}

#[test]
fn inspect() {
    let (mut lab, _, _) = Lab::held();
    lab.acquire(&attempt(2, 1));
    let (first, second) = lab.twice(0, |lab| {
        let inspected = lab.inspect();
        (inspected.holder, inspected.token, inspected.waiters)
    });
    assert_eq!(first, second);
}
