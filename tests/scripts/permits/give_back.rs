//! `permit_give_back`: some units of a hold.

use super::lab::{LEASES, PERMITS, Permits};
use crate::lab::{Around, CANCEL_GONE, CANCEL_RELEASED, LEASE, NOT_HELD, RELEASED, attempt, grant};

#[test]
fn the_hold_goes_on_with_the_rest() {
    let mut lab = Permits::semaphore(5);
    let (a, b, c) = (attempt(1, 1).units(4), attempt(2, 1), attempt(3, 1).units(2));
    lab.hold(&[&a, &b]);
    assert_eq!(lab.give_back(&a, 2), CANCEL_RELEASED);
    let a = a.units(2);
    lab.assert_held(&[&a, &b]);
    assert_eq!(lab.raw_used(), 3);
    lab.hold(&[&c]);
    lab.assert_held(&[&a, &b, &c]);
    assert_eq!((lab.renew_one(&a), lab.raw_used()), (1, 5));
    assert_eq!((lab.release(&a), lab.release(&b), lab.release(&c)), (RELEASED, RELEASED, RELEASED));
    assert_eq!(lab.server.keys(), [""; 0]);
}

#[test]
fn those_who_fit_then_are_granted_in_their_order() {
    let mut lab = Permits::semaphore(5);
    let a = attempt(1, 1).units(5);
    let (b, c, d) = (attempt(2, 1).units(2), attempt(3, 1), attempt(4, 1).units(3));
    lab.hold(&[&a]);
    lab.queue(&[&b, &c, &d]);
    let inboxes = [2, 3, 4].map(|client| lab.listen(client));
    assert_eq!(lab.give_back(&a, 4), CANCEL_RELEASED);
    lab.assert_held(&[&a.clone().units(4)]);
    assert_eq!(lab.give_back(&a, 1), CANCEL_RELEASED);
    lab.assert_held(&[&a.clone().units(1), &b, &c]);
    lab.assert_queue(&[&d]);
    lab.assert_messages(&inboxes[0], &[grant(&b, 0)]);
    lab.assert_messages(&inboxes[1], &[grant(&c, 0)]);
    lab.assert_messages(&inboxes[2], &[]);
    lab.release(&a);
    lab.release(&b);
    lab.assert_held(&[&c, &d]);
}

/// In whatever order the copies of several calls arrive.
#[test]
fn units_never_become_more() {
    let (mut lab, a) = (Permits::semaphore(9), attempt(1, 1).units(9));
    lab.hold(&[&a]);
    assert_eq!(lab.twice(0, |lab| lab.give_back(&a, 6)), (CANCEL_RELEASED, CANCEL_RELEASED));
    lab.assert_held(&[&a.clone().units(6)]);
    lab.give_back(&a, 2);
    for late in [6, 9, 2, 100] {
        assert_eq!(lab.twice(0, |lab| lab.give_back(&a, late)), (CANCEL_RELEASED, CANCEL_RELEASED));
        lab.assert_held(&[&a.clone().units(2)]);
    }
    assert_eq!(lab.release(&a), RELEASED);
    assert_eq!(lab.twice(0, |lab| lab.give_back(&a, 1)), (CANCEL_GONE, CANCEL_GONE));
    assert_eq!(lab.server.keys(), [""; 0]);
}

#[test]
fn only_its_holder_gives_back_and_only_while_the_lease_lasts() {
    let mut lab = Permits::semaphore(5);
    let (a, b, next) = (attempt(1, 1).units(4), attempt(2, 1), attempt(3, 1).units(3));
    assert_eq!(lab.give_back(&a, 1), CANCEL_GONE);
    assert_eq!(lab.server.keys(), [""; 0]);
    lab.hold(&[&a, &b]);
    lab.queue(&[&next]);
    lab.listen(3);
    assert_eq!(lab.give_back(&attempt(1, 2), 1), CANCEL_GONE);
    lab.assert_held(&[&a, &b]);
    lab.expire_hold(&a);
    assert_eq!(lab.give_back(&a, 1), CANCEL_GONE, "its lease is over");
    lab.assert_held(&[&b, &next]);
}

#[test]
fn a_sole_hold_is_stored_in_full() {
    let (mut lab, a) = (Permits::semaphore(5), attempt(1, 1).units(4).lease(90_000));
    lab.hold(&[&a]);
    assert_eq!(lab.server.keys(), [lab.keys[PERMITS].clone()]);
    assert_eq!(lab.give_back(&a, 3), CANCEL_RELEASED);
    lab.assert_held(&[&a.clone().units(3)]);
    for key in [PERMITS, LEASES] {
        assert!((80_000..=90_000).contains(&lab.ttl(key)), "{}", lab.ttl(key));
    }
    lab.hold(&[&attempt(2, 1).units(2)]);
    assert_eq!(lab.release(&a), RELEASED);
    assert_eq!(lab.release(&a), NOT_HELD);
}

/// What else is stored with the hold stays: the lease, and the longest that was asked for.
#[test]
fn the_lease_stays() {
    let (mut lab, a) = (Permits::semaphore(5), attempt(1, 1).units(4));
    lab.hold(&[&a, &attempt(2, 1)]);
    let longer = a.clone().lease(90_000);
    assert_eq!(lab.extend(&longer, 90_000), 1);
    let left = |lab: &mut Permits| lab.inspect().holds.into_iter().find(|hold| hold.0 == a.id).unwrap().3;
    let before = left(&mut lab);
    lab.give_back(&a, 1);
    assert!(left(&mut lab) > before - 5_000);
    // A late copy of an earlier renewal shortens nothing.
    assert_eq!(lab.renew_within(&a, LEASE), 1);
    assert!(left(&mut lab) > before - 5_000);
}

#[test]
fn a_stored_limit_stays_and_counts() {
    let mut lab = Permits::semaphore(5);
    let (a, next) = (attempt(1, 1).units(4), attempt(2, 1));
    lab.hold(&[&a]);
    lab.set_limit(2);
    lab.queue(&[&next]);
    lab.listen(2);
    lab.give_back(&a, 2);
    lab.assert_queue(&[&next]);
    lab.give_back(&a, 1);
    lab.assert_held(&[&a.clone().units(1), &next]);
    assert_eq!(lab.inspect().limit, 2);
    assert!(lab.ttl(PERMITS) > LEASE as i64);
}
