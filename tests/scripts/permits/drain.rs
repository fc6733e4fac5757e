//! `permit_drain`: all permits that are free.

use super::lab::{Drained, LEASES, PERMITS, Permits};
use crate::lab::{Around, CANCEL_RELEASED, LEASE, RELEASED, attempt, grant};

const BUSY: Drained = Drained::Busy { more: false };

#[test]
fn all_that_are_free_are_taken() {
    for held in 0..5 {
        let mut lab = Permits::semaphore(5);
        let (a, b) = (attempt(1, 1).units(held), attempt(2, 1));
        if held > 0 {
            lab.hold(&[&a]);
        }
        assert_eq!(lab.drain(&b), Drained::Granted(5 - held), "{held} are held");
        assert_eq!(lab.raw_used(), 5);
        let left = lab.inspect().holds.into_iter().find(|hold| hold.0 == b.id).unwrap();
        assert_eq!((left.1, left.3 > LEASE as i64 / 2), (5 - held, true));
        for key in [PERMITS, LEASES] {
            assert!(lab.ttl(key) > LEASE as i64 / 2);
        }
        lab.try_acquire(&attempt(3, 1)).busy();
        assert_eq!(lab.drain(&attempt(3, 2)), BUSY, "none is left");
        assert_eq!(lab.release(&b), RELEASED);
        assert_eq!(lab.drain(&attempt(3, 3)), Drained::Granted(5 - held), "they came back");
    }
}

/// Crashed holders of more permits than one call may reap: the next call takes all.
#[test]
fn all_means_all_whatever_is_to_be_reaped() {
    let mut lab = Permits::semaphore(300);
    lab.checked = false;
    let holders: Vec<_> = (1..=300).map(|n| attempt(1, n)).collect();
    lab.hold(&holders.iter().collect::<Vec<_>>());
    for holder in &holders {
        lab.expire_hold(holder);
    }
    lab.checked = true;
    assert_eq!(lab.drain(&attempt(2, 1)), Drained::Busy { more: true });
    assert_eq!(lab.drain(&attempt(2, 1)), Drained::Granted(300));
    assert_eq!(lab.drain(&attempt(2, 1)), Drained::Granted(300), "the same again");
}

#[test]
fn the_stored_limit_counts() {
    let (mut lab, a) = (Permits::semaphore(5), attempt(1, 1).units(2));
    lab.set_limit(3);
    lab.hold(&[&a]);
    assert_eq!(lab.drain(&attempt(2, 1)), Drained::Granted(1));
    lab.set_limit(1);
    assert_eq!(lab.drain(&attempt(3, 1)), BUSY, "more are held than the limit");
    lab.set_limit(7);
    assert_eq!(lab.drain(&attempt(3, 2)), Drained::Granted(4));
}

#[test]
fn nobody_who_waits_is_passed() {
    let mut lab = Permits::semaphore(5);
    let (a, b, c, d) = (attempt(1, 1).units(3), attempt(2, 1).units(4), attempt(3, 1), attempt(4, 1));
    lab.hold(&[&a]);
    lab.queue(&[&b, &c]);
    let inboxes = [2, 3].map(|client| lab.listen(client));
    assert_eq!(lab.drain(&d), BUSY, "b waits, though two are free");
    lab.assert_queue(&[&b, &c]);
    // Both fit when the first hold is over. They come before.
    lab.expire_hold(&a);
    assert_eq!(lab.drain(&d), BUSY);
    lab.assert_held(&[&b, &c]);
    lab.assert_messages(&inboxes[0], &[grant(&b, 0)]);
    lab.assert_messages(&inboxes[1], &[grant(&c, 0)]);
}

/// As a try does: they keep their places.
#[test]
fn waiters_that_cannot_be_notified_are_passed() {
    let mut lab = Permits::semaphore(2);
    let (a, b) = (attempt(1, 1).units(2), attempt(2, 1));
    lab.hold(&[&a]);
    lab.queue(&[&b]);
    lab.expire_hold(&a);
    assert_eq!(lab.drain(&attempt(3, 1)), Drained::Granted(2));
    lab.assert_queue(&[&b]);
}

#[test]
fn expired_holds_are_free() {
    let mut lab = Permits::semaphore(3);
    let (a, b, c) = (attempt(1, 1), attempt(2, 1), attempt(3, 1).units(2));
    lab.hold(&[&a, &b]);
    lab.expire_hold(&a);
    assert_eq!(lab.drain(&c), Drained::Granted(2));
    lab.assert_held(&[&b, &c]);
    lab.expire_hold(&b);
    lab.expire_hold(&c);
    let all = attempt(4, 1).units(3);
    assert_eq!(lab.drain(&all), Drained::Granted(3));
    lab.assert_held(&[&all]);
}

/// A sole hold is stored in full first, and so is what is drained beside it.
#[test]
fn beside_a_sole_hold() {
    let (mut lab, a, b) = (Permits::semaphore(5), attempt(1, 1).units(2), attempt(2, 1).units(3));
    lab.hold(&[&a]);
    assert_eq!(lab.drain(&b), Drained::Granted(3));
    lab.assert_held(&[&a, &b]);
    assert_eq!((lab.release(&a), lab.release(&b)), (RELEASED, RELEASED));
    assert_eq!(lab.server.keys(), [""; 0]);
}

/// It takes no more, though others came back, and its lease begins anew.
#[test]
fn a_second_copy_is_told_what_the_first_one_took() {
    let (mut lab, a, b) = (Permits::semaphore(5), attempt(1, 1).units(2), attempt(2, 1).units(3));
    lab.hold(&[&a]);
    let (first, second) = lab.twice(5_000, |lab| lab.drain(&b));
    assert_eq!((first, second), (Drained::Granted(3), Drained::Granted(3)));
    lab.release(&a);
    let (leases, soon) = (lab.keys[LEASES].clone(), (lab.now() + 1_000).to_string());
    lab.raw(&["ZADD", &leases, "XX", &soon, &b.id]);
    assert_eq!(lab.drain(&b), Drained::Granted(3));
    lab.assert_held(&[&b]);
    assert!(lab.inspect().holds[0].3 > LEASE as i64 / 2, "with its full lease");
    // Also after the limit was lowered, and when the copy is late.
    lab.set_limit(1);
    assert_eq!(lab.drain(&b), Drained::Granted(3));
    let past = lab.past();
    assert_eq!(lab.drain(&b.clone().not_after(past)), Drained::Granted(3));
    assert_eq!(lab.cancel(&b), CANCEL_RELEASED);
    assert_eq!(lab.twice(0, |lab| lab.drain(&b.clone().not_after(1))), (Drained::Stale, Drained::Stale));
    lab.assert_held(&[]);
}
