//! A script that fails has changed nothing: wrong-typed keys, a server out of memory, a user without permissions.

use super::lab::{FENCE, LEASES, PERMITS, Permits, QUEUE, TICKETS, writer};
use crate::lab::{Acquired, Around, Attempt, CANCELLED, RELEASED, State, attempt};

/// Read by the first, waited for by a writer, who listens.
fn contended() -> (Permits, Attempt, Attempt) {
    let mut lab = Permits::read_write();
    let (r, w) = (attempt(1, 1), writer(2, 1));
    lab.hold(&[&r]);
    lab.queue(&[&w]);
    lab.listen(2);
    (lab, r, w)
}

#[track_caller]
fn assert_all_refuse(lab: &mut Permits, r: &Attempt, w: &Attempt) {
    for mode in ["try", "wait"] {
        for asking in [&attempt(3, 1), &writer(3, 2), w] {
            lab.assert_refused("WRONGTYPE", |lab| lab.acquire_as(mode, asking));
        }
    }
    lab.assert_refused("WRONGTYPE", |lab| lab.release_and_queue(r, None));
    lab.assert_refused("WRONGTYPE", |lab| lab.release_and_queue(r, Some(&attempt(1, 2))));
    for ticket in [lab.ticket(r), lab.ticket(w), "x".to_owned()] {
        lab.assert_refused("WRONGTYPE", |lab| lab.cancel_ticket(&ticket, false));
    }
    lab.assert_refused("WRONGTYPE", |lab| lab.try_heartbeat(&[w]));
    lab.assert_refused("WRONGTYPE", |lab| lab.try_heartbeat(&[r, w]));
    lab.assert_refused("WRONGTYPE", |lab| lab.try_change(r, &writer(1, 2)));
    lab.assert_refused("WRONGTYPE", |lab| lab.try_drain(&attempt(3, 3)));
    lab.assert_refused("WRONGTYPE", |lab| lab.try_give_back(r, 1));
}

/// Only a semaphore has a limit, and it has no counter.
#[track_caller]
fn assert_limit_refused(lab: &mut Permits, wrong: usize) {
    if wrong != FENCE {
        lab.assert_refused("WRONGTYPE", |lab| lab.try_set_limit(3, 0));
    }
}

#[test]
fn a_wrong_key() {
    for key in [PERMITS, LEASES, QUEUE, TICKETS, FENCE] {
        for expired in [false, true] {
            let (mut lab, r, w) = contended();
            if expired {
                lab.expire_hold(&r);
            }
            lab.set_wrong(key);
            assert_all_refuse(&mut lab, &r, &w);
            assert_limit_refused(&mut lab, key);
            match key {
                PERMITS | LEASES => {
                    assert_eq!(lab.renew_one(&r), -1);
                    lab.assert_refused("WRONGTYPE", Permits::try_inspect);
                }
                TICKETS => lab.assert_refused("WRONGTYPE", Permits::try_inspect),
                _ => assert_eq!(lab.inspect().used, u32::from(!expired)),
            }
        }
    }
}

#[test]
fn a_wrong_key_without_waiters() {
    for key in [PERMITS, LEASES, QUEUE, TICKETS, FENCE] {
        let mut lab = Permits::read_write();
        lab.set_wrong(key);
        for mode in ["try", "wait"] {
            for asking in [attempt(1, 1), writer(1, 2)] {
                lab.assert_refused("WRONGTYPE", |lab| lab.acquire_as(mode, &asking));
            }
        }
        lab.assert_refused("WRONGTYPE", |lab| lab.try_heartbeat(&[&attempt(1, 1)]));
        lab.assert_refused("WRONGTYPE", |lab| lab.cancel_ticket(&lab.ticket(&attempt(1, 1)), false));
        assert_limit_refused(&mut lab, key);
    }
    // Scripts that need no token work.
    let mut lab = Permits::read_write();
    let r = attempt(1, 1);
    lab.hold(&[&r]);
    lab.set_wrong(FENCE);
    assert_eq!((lab.renew_one(&r), lab.release(&r)), (1, RELEASED));
    let mut lab = Permits::semaphore(2);
    lab.set_wrong(FENCE);
    lab.hold(&[&r]);
}

#[test]
fn a_lease_out_of_range_leaves_nothing() {
    for mode in ["try", "wait"] {
        for mut lab in [Permits::semaphore(2), Permits::read_write()] {
            let forever = attempt(1, 1).lease(u64::MAX);
            assert!(lab.acquire_as(mode, &forever).is_err());
            assert_eq!((lab.ttl(PERMITS), lab.ttl(LEASES)), (-2, -2));
            let a = attempt(1, 2);
            lab.hold(&[&a]);
            assert!(lab.acquire_as(mode, &forever).is_err());
            assert!(lab.try_change(&a, &attempt(1, 3).lease(u64::MAX)).is_err());
            lab.assert_held(&[&a]);
            assert!(lab.ttl(PERMITS) <= 30_000);
        }
    }
}

#[test]
fn out_of_memory() {
    let (mut lab, r, w) = contended();
    lab.raw(&["CONFIG", "SET", "maxmemory", "1"]);
    lab.assert_refused("OOM", |lab| lab.acquire_as("wait", &attempt(3, 1)));
    // Scripts that free memory work, and promote the next tickets.
    assert_eq!(lab.release(&r), RELEASED);
    lab.assert_held(&[&w]);
    assert_eq!(lab.release(&w), RELEASED);
    lab.assert_refused("OOM", |lab| lab.acquire_as("try", &attempt(3, 2)));
    lab.raw(&["CONFIG", "SET", "maxmemory", "0"]);
    lab.hold(&[&attempt(3, 3)]);
    let mut lab = Permits::semaphore(1);
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    lab.hold(&[&a]);
    lab.queue(&[&b]);
    lab.expire_hold(&a);
    lab.raw(&["CONFIG", "SET", "maxmemory", "1"]);
    assert!(matches!(lab.state(&b), State::Granted(_)), "its holder is gone");
    let mut lab = Permits::semaphore(3);
    lab.hold(&[&a, &b]);
    lab.raw(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(lab.release(&a), RELEASED);
    lab.assert_held(&[&b]);
    assert_eq!(lab.release(&b), RELEASED);
}

/// The user may run `HSET` and `RPUSH`, but not the commands after them. No hold, no ticket and no key without a TTL
/// remains.
#[test]
fn a_user_who_may_not_finish_a_hold() {
    for refused in ["-pexpire", "-zadd"] {
        for mode in ["try", "wait"] {
            let mut lab = Permits::read_write();
            lab.raw(&["ACL", "SETUSER", "default", refused]);
            assert_eq!(lab.acquire_as(mode, &attempt(1, 1)).unwrap_err(), "NOPERM", "{refused}");
            assert_eq!((lab.ttl(PERMITS), lab.ttl(LEASES)), (-2, -2), "{refused}");
            lab.raw(&["ACL", "SETUSER", "default", "+@all"]);
            // Next to the hold of another client.
            let a = attempt(1, 2).lease(10_000);
            lab.hold(&[&a]);
            lab.raw(&["ACL", "SETUSER", "default", refused]);
            lab.assert_refused("NOPERM", |lab| lab.acquire_as(mode, &attempt(2, 1)));
            lab.assert_refused("NOPERM", |lab| lab.acquire_as("wait", &writer(3, 1)));
            lab.assert_refused("NOPERM", |lab| lab.try_change(&a, &attempt(1, 3)));
        }
    }
    let mut lab = Permits::semaphore(3);
    lab.raw(&["ACL", "SETUSER", "default", "-pexpire"]);
    assert!(lab.try_set_limit(2, 0).is_err());
    assert_eq!(lab.server.keys(), [""; 0]);
}

/// The missing right is noticed before the hold is written.
#[test]
fn a_user_who_may_not_see_a_ttl() {
    let mut lab = Permits::semaphore(3);
    let a = attempt(1, 1);
    lab.hold(&[&a]);
    lab.raw(&["ACL", "SETUSER", "default", "-pttl"]);
    // The checks need it too.
    lab.checked = false;
    assert!(lab.acquire_as("try", &attempt(2, 1)).is_err());
    lab.checked = true;
    lab.raw(&["ACL", "SETUSER", "default", "+@all"]);
    lab.assert_held(&[&a]);
    assert_eq!(lab.raw_used(), 1);
}

/// A waiter that cannot be told must not hold permits without knowing.
#[test]
fn a_user_who_may_not_publish() {
    for counts_everyone in [true, false] {
        let (mut lab, r, w) = contended();
        lab.counts_everyone = counts_everyone;
        lab.raw(&["ACL", "SETUSER", "default", "-publish"]);
        assert_eq!(lab.release(&r), RELEASED);
        lab.assert_held(&[]);
        lab.assert_queue(&[&w]);
        assert!(matches!(lab.state(&w), State::Granted(_)), "its own heartbeat tells it");
        let (c, d) = (attempt(3, 1), attempt(4, 1));
        lab.queue(&[&c, &d]);
        assert_eq!(lab.cancel(&c), CANCELLED);
        assert_eq!(lab.release(&w), RELEASED);
        assert!(matches!(lab.acquire(&d), Acquired::Granted(_)));
    }
    // Dropping a ticket does not need it, either.
    let mut lab = Permits::semaphore(3);
    let a = attempt(1, 1);
    lab.hold(&[&a]);
    lab.queue(&[&attempt(2, 1).units(3)]);
    lab.raw(&["ACL", "SETUSER", "default", "-publish"]);
    assert_eq!(lab.set_limit(2), super::lab::LIMIT);
    lab.assert_queue(&[]);
}
