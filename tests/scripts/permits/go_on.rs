//! `permit_go_on`: every reply, and what a second copy does.

use super::lab::{LEASES, PERMITS, Permits, QUEUE, TICKETS};
use crate::lab::{Ahead, Around, Attempt, RELEASED, attempt};

const GRANTED: Ahead = Ahead::Granted(0);

/// A semaphore with a hold of its only permit, stored short and in full.
fn held() -> [(Permits, Attempt); 2] {
    [false, true].map(|in_full| {
        let (mut lab, a) = (Permits::semaphore(1), attempt(1, 1).lease(15_000));
        lab.hold(&[&a]);
        if in_full {
            lab.store_in_full();
        }
        (lab, a)
    })
}

#[track_caller]
fn assert_unchanged(lab: &mut Permits, asks: impl FnOnce(&mut Permits) -> Ahead, expected: &Ahead) {
    let before = lab.dump();
    assert_eq!(asks(lab), *expected);
    before.assert_same(&lab.dump(), 0);
}

#[test]
fn a_hold_goes_on_if_nobody_waits() {
    for (mut lab, a) in held() {
        let longer = a.clone().lease(40_000);
        assert_eq!(lab.go_on(&longer, &[]), GRANTED);
        assert!(lab.ttl(PERMITS) > 15_000, "the lease begins anew");
        lab.assert_held(&[&a]);
        assert_eq!((lab.go_on(&a, &[]), lab.ttl(PERMITS) > 15_000), (GRANTED, true), "a late copy shortens nothing");
        assert_eq!(lab.release(&a), RELEASED);
        assert_eq!(lab.server.keys(), [""; 0]);
    }
}

/// The tickets of the cohort stay where they are, with the time that they have.
#[test]
fn its_own_tickets_are_no_others() {
    for (mut lab, a) in held() {
        let (b, c) = (attempt(1, 2), attempt(1, 3));
        lab.queue(&[&b, &c]);
        let ttl = lab.ttl(TICKETS);
        assert_eq!(lab.go_on(&a, &[&b, &c]), GRANTED);
        lab.assert_queue(&[&b, &c]);
        assert!(lab.ttl(TICKETS) <= ttl);
        assert_unchanged(&mut lab, |lab| lab.go_on(&a, &[&b]), &Ahead::Wanted);
        assert_unchanged(&mut lab, |lab| lab.go_on(&a, &[]), &Ahead::Wanted);
    }
}

/// Also one of the same client, which another cohort or a fair acquisition has queued.
#[test]
fn the_ticket_of_anybody_else_ends_it() {
    for other in [attempt(2, 1), attempt(1, 3)] {
        for first in [false, true] {
            let [(mut lab, a), _] = held();
            let own = attempt(1, 2);
            lab.queue(&if first { [&other, &own] } else { [&own, &other] });
            assert_unchanged(&mut lab, |lab| lab.go_on(&a, &[&own]), &Ahead::Wanted);
            lab.cancel(&other);
            assert_eq!(lab.go_on(&a, &[&own]), GRANTED);
        }
    }
}

#[test]
fn tickets_whose_time_is_over_do_not_count() {
    let [(mut lab, a), _] = held();
    let (own, other) = (attempt(1, 2), attempt(2, 1));
    lab.queue(&[&own, &other]);
    lab.expire_ticket(&own);
    assert_eq!(lab.go_on(&a, &[&own]), Ahead::Wanted, "one ticket is left, and it is the other's");
    lab.expire_ticket(&other);
    assert_eq!(lab.go_on(&a, &[&own]), GRANTED);
}

/// Half of the queue was lost, so its order is lost.
#[test]
fn half_a_queue_is_none() {
    for lost in [QUEUE, TICKETS] {
        let [(mut lab, a), _] = held();
        lab.queue(&[&attempt(2, 1)]);
        lab.del(lost);
        assert_eq!(lab.go_on(&a, &[]), GRANTED);
    }
}

/// A cohort that is always busy gives back what an operator wants to have back.
#[test]
fn more_than_the_limit_does_not_go_on() {
    let mut lab = Permits::semaphore(2);
    let (a, b) = (attempt(1, 1), attempt(1, 2));
    lab.hold(&[&a, &b]);
    assert_eq!(lab.go_on(&a, &[]), GRANTED);
    lab.set_limit(1);
    assert_unchanged(&mut lab, |lab| lab.go_on(&a, &[]), &Ahead::Wanted);
    lab.release(&b);
    assert_eq!(lab.go_on(&a, &[]), GRANTED);
    // The limit of the handle, if none is stored.
    let mut lab = Permits::semaphore(2);
    lab.hold(&[&a, &b]);
    assert_unchanged(&mut lab, |lab| lab.go_on(&a.clone().limit(1), &[]), &Ahead::Wanted);
    assert_eq!(lab.go_on(&a.clone().limit(2), &[]), GRANTED);
}

#[test]
fn a_caller_that_does_not_hold_does_not_go_on() {
    for (mut lab, a) in held() {
        assert_unchanged(&mut lab, |lab| lab.go_on(&attempt(1, 2), &[]), &Ahead::NotHeld);
        lab.expire_hold(&a);
        assert_unchanged(&mut lab, |lab| lab.go_on(&a, &[]), &Ahead::NotHeld);
        lab.release(&a);
        assert_unchanged(&mut lab, |lab| lab.go_on(&a, &[]), &Ahead::NotHeld);
    }
}

#[test]
fn a_second_copy_changes_nothing() {
    for (mut lab, a) in held() {
        assert_eq!(lab.twice(5_000, |lab| lab.go_on(&a, &[])), (GRANTED, GRANTED));
        lab.release(&a);
        assert_eq!(lab.twice(0, |lab| lab.go_on(&a, &[])), (Ahead::NotHeld, Ahead::NotHeld));
    }
}

/// Keys that belong to somebody else.
#[test]
fn keys_of_a_wrong_type_are_an_error() {
    for key in [PERMITS, LEASES, QUEUE, TICKETS] {
        for (mut lab, a) in held() {
            lab.set_wrong(key);
            let before = lab.dump();
            let error = lab.try_go_on(&a, &[]).unwrap_err();
            assert!(error.contains("WRONGTYPE"), "{key}: {error}");
            before.assert_same(&lab.dump(), 0);
        }
    }
}
