//! `permit_acquire`: every reply.

use super::lab::{ALL, Acquired, FENCE, LEASES, PERMITS, Permits, QUEUE, SPAN, writer};
use crate::lab::{Acquired as Granted, LEASE, RELEASED, TICKET_TTL, attempt, grant};

#[test]
fn a_semaphore_grants_up_to_its_limit_without_tokens() {
    for mode in ["try", "wait"] {
        let mut lab = Permits::semaphore(3);
        let (a, b) = (attempt(1, 1).units(2), attempt(2, 1));
        for holder in [&a, &b] {
            assert_eq!(lab.acquire_as(mode, holder), Ok(Acquired::As(Granted::Granted(0))));
        }
        lab.assert_held(&[&a, &b]);
        assert_eq!(lab.server.keys(), [lab.keys[PERMITS].clone(), lab.keys[LEASES].clone()], "permits do not fence");
        for key in [PERMITS, LEASES] {
            assert!((LEASE as i64 - 5_000..=LEASE as i64).contains(&lab.ttl(key)));
        }
        let left = lab.try_acquire(&attempt(3, 1)).busy();
        assert!((1..=LEASE as i64).contains(&left), "{left}");
        assert_eq!(lab.acquire(&attempt(3, 2)).queued(), 1);
    }
}

#[test]
fn ttl_is_that_of_the_first_lease_in_the_way() {
    let mut lab = Permits::semaphore(2);
    lab.hold(&[&attempt(1, 1).lease(60_000), &attempt(2, 1).lease(20_000)]);
    assert!(lab.try_acquire(&attempt(3, 1)).busy() <= 20_000);
    let Granted::Queued { ttl, length: 1, more: false } = lab.acquire(&attempt(3, 2)) else { panic!() };
    assert!((1..=20_000).contains(&ttl));
}

#[test]
fn the_longest_lease_is_the_keys_time_to_live() {
    let mut lab = Permits::semaphore(5);
    lab.hold(&[&attempt(1, 1).lease(90_000), &attempt(2, 1).lease(20_000)]);
    for key in [PERMITS, LEASES] {
        assert!(lab.ttl(key) > 80_000, "a shorter lease shortened it");
    }
    lab.hold(&[&attempt(3, 1).lease(200_000)]);
    for key in [PERMITS, LEASES] {
        assert!((190_000..=200_000).contains(&lab.ttl(key)));
    }
}

#[test]
fn more_than_there_is_at_all_is_over() {
    for mode in ["try", "wait"] {
        let mut lab = Permits::semaphore(3);
        let much = attempt(1, 1).units(4);
        assert_eq!(lab.acquire_as(mode, &much), Ok(Acquired::Over(3)));
        assert_eq!(lab.server.keys(), [""; 0]);
        lab.limit = 4;
        lab.acquire_as(mode, &much).unwrap();
        lab.assert_held(&[&much]);
        lab.limit = 3;
        // An existing hold is confirmed, whatever the limit is now.
        assert_eq!(lab.acquire_as(mode, &much), Ok(Acquired::As(Granted::Granted(0))));
    }
}

#[test]
fn full() {
    let mut lab = Permits::semaphore(1);
    lab.hold(&[&attempt(1, 1)]);
    lab.queue(&[&attempt(2, 1).max_waiters(1)]);
    assert_eq!(lab.acquire(&attempt(3, 1).max_waiters(1)), Granted::Full(1));
}

/// A refused request may drop a dead head, and must then promote the tickets behind it: no other call would.
#[test]
fn who_finds_a_full_queue_behind_a_dead_head_lets_it_in() {
    let mut lab = Permits::semaphore(3);
    let (a, dead) = (attempt(1, 1), attempt(2, 1).units(3));
    let (b, c, d) = (attempt(3, 1), attempt(3, 2), attempt(3, 3).units(2));
    lab.hold(&[&a]);
    lab.queue(&[&dead, &b, &c, &d]);
    lab.listen(3);
    lab.expire_ticket(&dead);
    assert_eq!(lab.acquire(&attempt(4, 1).max_waiters(1)), Granted::Full(1));
    lab.assert_held(&[&a, &b, &c]);
    lab.assert_queue(&[&d]);
}

/// In one call: tickets that are promoted first must not block the caller.
#[test]
fn who_finds_room_behind_a_full_queue_goes_in_with_the_others() {
    let mut lab = Permits::read_write();
    let (a, deaf, b, c) = (attempt(1, 1), writer(2, 1), attempt(3, 1), attempt(2, 2).max_waiters(1));
    lab.hold(&[&a]);
    lab.queue(&[&deaf, &b]);
    let _inbox = lab.listen(3);
    lab.expire_hold(&a);
    lab.acquire(&c).granted();
    lab.assert_held(&[&b, &c]);
    lab.assert_queue(&[&deaf]);
}

#[test]
fn stale_when_neither_held_nor_queued() {
    for mode in ["try", "wait"] {
        let mut lab = Permits::semaphore(2);
        let late = attempt(1, 1).not_after(1);
        assert_eq!(lab.acquire_as(mode, &late), Ok(Acquired::As(Granted::Stale)));
        assert_eq!(lab.server.keys(), [""; 0]);
        let in_time = late.clone().not_after(lab.now() + 60_000);
        lab.hold(&[&in_time, &attempt(2, 1)]);
        assert_eq!(lab.acquire_as(mode, &late), Ok(Acquired::As(Granted::Granted(0))));
        let waiter = attempt(3, 1);
        lab.queue(&[&waiter]);
        assert_eq!(lab.acquire(&waiter.not_after(1)).queued(), 1);
        assert_eq!(lab.acquire_as(mode, &attempt(4, 1).not_after(1)), Ok(Acquired::As(Granted::Stale)));
    }
}

#[test]
fn a_resend_is_granted_once_and_gets_its_full_lease() {
    for mode in ["try", "wait"] {
        let mut lab = Permits::semaphore(2);
        let (a, b) = (attempt(1, 1), attempt(2, 1));
        lab.hold(&[&a, &b]);
        lab.queue(&[&attempt(3, 1)]);
        let (leases, soon) = (lab.keys[LEASES].clone(), (lab.now() + 1_000).to_string());
        lab.raw(&["ZADD", &leases, "XX", &soon, &a.id]);
        assert_eq!(lab.acquire_as(mode, &a), Ok(Acquired::As(Granted::Granted(0))));
        lab.assert_held(&[&a, &b]);
        assert!(lab.inspect().holds.iter().all(|(.., left)| *left > 20_000));
    }
}

#[test]
fn a_resend_of_a_waiter_keeps_its_place_and_refreshes_its_ticket() {
    let mut lab = Permits::semaphore(1);
    lab.hold(&[&attempt(1, 1)]);
    let (b, c) = (attempt(2, 1), attempt(3, 1));
    lab.queue(&[&b, &c]);
    lab.expire_ticket(&b);
    assert_eq!(lab.inspect().waiters, 1);
    assert_eq!(lab.acquire(&b).queued(), 2);
    lab.assert_queue(&[&b, &c]);
    assert_eq!(lab.inspect().waiters, 2);
    assert!(lab.ttl(QUEUE) > 3_590_000 && TICKET_TTL > 0);
}

#[test]
fn a_hold_whose_lease_is_over_is_granted_anew_and_counted_once() {
    for limit in [1, 2, 5] {
        let mut lab = Permits::semaphore(limit);
        let a = attempt(1, 1);
        lab.hold(&[&a]);
        lab.expire_hold(&a);
        lab.hold(&[&a]);
        lab.assert_held(&[&a]);
    }
}

/// Also for a try: waiters are served first.
#[test]
fn no_request_passes_a_live_ticket() {
    for mode in ["try", "wait"] {
        let mut lab = Permits::semaphore(3);
        let (a, big, small) = (attempt(1, 1).units(2), attempt(2, 1).units(3), attempt(3, 1));
        lab.hold(&[&a]);
        lab.queue(&[&big]);
        let Acquired::As(refused) = lab.acquire_as(mode, &small).unwrap() else { panic!() };
        assert!(matches!(refused, Granted::Busy { more: false, .. } | Granted::Queued { more: false, .. }));
        lab.assert_held(&[&a]);
        // Not even if the first ticket could be granted, but its client has not been notified yet.
        lab.expire_hold(&a);
        let inbox = lab.listen(2);
        let Acquired::As(refused) = lab.acquire_as(mode, &attempt(4, 1)).unwrap() else { panic!() };
        assert!(matches!(refused, Granted::Busy { more: false, .. } | Granted::Queued { more: false, .. }));
        lab.assert_held(&[&big]);
        lab.assert_messages(&inbox, &[grant(&big, 0)]);
    }
}

#[test]
fn an_acquisition_passes_unreachable_waiters_and_their_tickets_stay() {
    for mode in ["try", "wait"] {
        let mut lab = Permits::semaphore(2);
        let (a, b, c) = (attempt(1, 1).units(2), attempt(2, 1), attempt(3, 1));
        lab.hold(&[&a]);
        lab.queue(&[&b, &c]);
        lab.expire_hold(&a);
        let d = attempt(4, 1);
        assert_eq!(lab.acquire_as(mode, &d), Ok(Acquired::As(Granted::Granted(0))));
        lab.assert_queue(&[&b, &c]);
        lab.assert_held(&[&d]);
    }
}

#[test]
fn writers_reserve_a_span_of_tokens_and_readers_carry_the_last_one() {
    let mut lab = Permits::read_write();
    let before = lab.clock();
    let first = lab.acquire(&attempt(1, 1)).token();
    assert!(first >= before.us || !lab.ran_on_since(&before), "the counter was gone: a new token");
    assert_eq!(lab.acquire(&attempt(2, 1)).token(), first);
    assert!(lab.ttl(FENCE) > 3_500_000);
    for reader in [attempt(1, 1), attempt(2, 1)] {
        assert_eq!(lab.release(&reader), RELEASED);
    }
    let write = lab.acquire(&writer(3, 1)).token();
    assert!(write > first);
    assert_eq!(lab.acquire(&writer(3, 1)).token(), write, "a resend keeps it");
    lab.release(&writer(3, 1));
    let fence = lab.keys[FENCE].clone();
    lab.raw(&["PEXPIRE", &fence, "60000"]);
    assert_eq!(lab.try_acquire(&attempt(4, 1)).token(), write + SPAN - 1);
    assert!(lab.ttl(FENCE) > 3_500_000, "each grant keeps the counter");
    assert_eq!(lab.keys[FENCE], lab.server.keys()[1]);
    lab.release(&attempt(4, 1));
    assert!(lab.try_acquire(&writer(5, 1)).token() >= write + SPAN);
}

#[test]
fn a_lost_or_foreign_counter_gives_readers_a_new_token() {
    for junk in ["", "x", "0", "-5", "nan", "99999999999999999999"] {
        let mut lab = Permits::read_write();
        let write = lab.acquire(&writer(1, 1)).token();
        lab.release(&writer(1, 1));
        let fence = lab.keys[FENCE].clone();
        if junk.is_empty() {
            lab.del(FENCE);
        } else {
            lab.raw(&["SET", &fence, junk, "PX", "100000"]);
        }
        let read = lab.acquire(&attempt(2, 1)).token();
        assert!(read > write, "{junk}");
        assert_eq!(lab.acquire(&attempt(3, 1)).token(), read);
    }
}

#[test]
fn readers_share_and_a_writer_takes_all() {
    let mut lab = Permits::read_write();
    let readers = [attempt(1, 1), attempt(2, 1), attempt(2, 2)];
    lab.hold(&readers.iter().collect::<Vec<_>>());
    lab.try_acquire(&writer(3, 1)).busy();
    for reader in &readers {
        lab.release(reader);
    }
    lab.hold(&[&writer(3, 1)]);
    lab.try_acquire(&attempt(4, 1)).busy();
    lab.try_acquire(&writer(4, 2)).busy();
    assert_eq!(lab.inspect().used, ALL);
}
