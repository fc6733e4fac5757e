//! `latch_wait`, `latch_heartbeat` and `latch_cancel`: every reply.

use super::lab::{Counted, LATCH, Latch, Set, State, TICKETS, TTL, Waits, call};
use crate::lab::{TICKET_TTL, attempt};

#[test]
fn an_open_latch_queues_no_ticket() {
    let mut lab = Latch::new();
    let a = attempt(2, 1);
    assert_eq!(lab.wait(&a), Waits::None);
    assert_eq!(lab.wait(&a.clone().not_after(1)), Waits::None);
    assert_eq!(lab.server.keys(), [""; 0]);
    let mut lab = Latch::of(1);
    lab.count_down(&call(1));
    assert_eq!(lab.wait(&a), Waits::Open);
    assert_eq!(lab.ttl(TICKETS), -2);
}

#[test]
fn a_closed_latch_does() {
    let mut lab = Latch::of(1);
    let a = attempt(2, 1);
    let Waits::Queued(left) = lab.wait(&a) else { panic!() };
    assert!((TTL as i64 - 10_000..=TTL as i64).contains(&left));
    assert!((3_590_000..=3_600_000).contains(&lab.ttl(TICKETS)));
    assert_eq!(lab.inspect().waiters, 1);
    assert_eq!(lab.heartbeat(&[&a, &attempt(2, 2)]), [State::Waiting, State::Gone]);
    assert_eq!(lab.heartbeat(&[]), []);
}

#[test]
fn a_resend_and_a_heartbeat_refresh_the_ticket() {
    let mut lab = Latch::of(1);
    let a = attempt(2, 1);
    for heartbeat in [false, true] {
        lab.queue(&[&a]);
        lab.expire_ticket(&a, 1);
        let key = lab.keys[TICKETS].clone();
        lab.raw(&["PEXPIRE", &key, "60000"]);
        assert_eq!(lab.inspect().waiters, 0);
        if heartbeat {
            assert_eq!(lab.heartbeat(&[&a]), [State::Waiting]);
        } else {
            lab.queue(&[&a.clone().not_after(1)]);
        }
        assert_eq!(lab.inspect().waiters, 1);
        let expiry: u64 = redis::cmd("ZSCORE").arg(key).arg(&a.id).query(&mut lab.connection).unwrap();
        assert!(expiry > lab.now() + TICKET_TTL - 10_000);
        assert!(lab.ttl(TICKETS) > 3_000_000);
    }
}

/// A latch that ended by its time to live was not counted down.
#[test]
fn a_latch_that_vanishes_is_gone_and_not_open() {
    for key in [LATCH, TICKETS] {
        let mut lab = Latch::of(1);
        let a = attempt(2, 1);
        lab.queue(&[&a]);
        lab.del(key);
        assert_eq!(lab.heartbeat(&[&a]), [State::Gone]);
        assert_eq!(lab.heartbeat(&[&a]), [State::Gone]);
    }
    let mut lab = Latch::new();
    assert_eq!(lab.try_set(&call(1), 1, 50), Ok(Set::Set));
    let a = attempt(2, 1);
    if lab.wait(&a) != Waits::None {
        let start = std::time::Instant::now();
        while lab.heartbeat(&[&a]) == [State::Waiting] {
            assert!(start.elapsed() < std::time::Duration::from_secs(10));
        }
        assert_eq!(lab.heartbeat(&[&a]), [State::Gone]);
        // After the latch was set again, the waiter waits on.
        assert_eq!(lab.set(&call(2), 1), Set::Set);
        assert_eq!(lab.heartbeat(&[&a]), [State::Waiting]);
    }
}

/// It was counted down and set anew before a waiter that could not be told has asked.
#[test]
fn a_waiter_that_missed_the_opening_is_not_kept_for_the_next_one() {
    let mut lab = Latch::of(1);
    let a = attempt(2, 1);
    lab.queue(&[&a]);
    assert_eq!(lab.count_down(&call(1)), Counted::Count(0));
    assert_eq!(lab.set(&call(2), 1), Set::Set);
    assert_eq!(lab.heartbeat(&[&a]), [State::Gone]);
    assert_eq!(lab.inspect().waiters, 0);
}

#[test]
fn a_cancelled_waiter_is_not_told() {
    let mut lab = Latch::of(1);
    let (a, b) = (attempt(2, 1), attempt(2, 2));
    lab.queue(&[&a, &b]);
    assert!(lab.cancel(&a));
    assert!(!lab.cancel(&a));
    let inbox = lab.listen(2);
    lab.count_down(&call(1));
    assert_eq!(lab.read(&inbox), [format!("open {}", b.id)]);
    assert!(!lab.cancel(&b));
    // The last waiter's cancel removes the key.
    let mut lab = Latch::of(1);
    lab.queue(&[&a]);
    assert!(lab.cancel(&a));
    assert_eq!(lab.ttl(TICKETS), -2);
}

#[test]
fn waiters_without_a_heartbeat_for_an_hour_are_dropped_a_few_at_a_time() {
    let mut lab = Latch::of(1);
    for n in 1..=20 {
        lab.queue(&[&attempt(2, n)]);
    }
    for n in 1..=20 {
        lab.expire_ticket(&attempt(2, n), 3_600_010);
    }
    lab.expire_ticket(&attempt(2, 20), 3_500_000);
    lab.queue(&[&attempt(3, 1)]);
    let key = lab.keys[TICKETS].clone();
    let left: u64 = redis::cmd("ZCARD").arg(key).query(&mut lab.connection).unwrap();
    assert_eq!(left, 5);
    assert_eq!(lab.heartbeat(&[&attempt(2, 20)]), [State::Waiting]);
}
