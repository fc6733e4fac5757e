//! `lock_acquire`: every reply.

use crate::lab::{Acquired, LEASE, Lab, NOT_HELD, RELEASED, TICKET_TTL, attempt, grant, keys_of};

#[test]
fn a_free_lock_is_granted_in_both_modes() {
    for mode in ["try", "wait"] {
        let mut lab = Lab::new();
        let a = attempt(1, 1);
        let before = lab.clock();
        let token = lab.acquire_as(mode, &a).unwrap().token();
        assert!(token >= before.us || !lab.ran_on_since(&before), "{token} is below the clock {}", before.us);
        let inspected = lab.inspect();
        assert_eq!((inspected.holder, inspected.token, inspected.waiters), (a.id, token.to_string(), 0));
        assert!((1..=LEASE as i64).contains(&inspected.ttl));
        let keys = keys_of("n");
        assert_eq!(lab.server.keys(), [&*keys[0], &*keys[3]]);
    }
}

#[test]
fn the_lease_is_the_ttl() {
    let mut lab = Lab::new();
    lab.acquire(&attempt(1, 1).lease(86_400_000));
    assert!((86_390_000..=86_400_000).contains(&lab.lock_ttl()));
}

#[test]
fn a_held_lock_is_busy_or_queues() {
    let (mut lab, holder, _) = Lab::held();
    let ttl = lab.try_acquire(&attempt(2, 1)).busy();
    assert!((1..=LEASE as i64).contains(&ttl));
    lab.assert_queue(&[]);
    let (b, c) = (attempt(2, 2), attempt(3, 1));
    assert_eq!(lab.acquire(&b).queued(), 1);
    assert_eq!(lab.acquire(&c).queued(), 2);
    lab.assert_queue(&[&b, &c]);
    lab.assert_holder(&holder);
    let queue_ttl = lab.server.ttl_ms(&lab.keys[1]);
    assert!((3_590_000..=3_600_000).contains(&queue_ttl));
}

#[test]
fn a_resend_of_the_holder_keeps_the_token_and_refreshes_the_lease() {
    for mode in ["try", "wait"] {
        let (mut lab, a, token) = Lab::held();
        let key = lab.keys[0].clone();
        lab.raw(&["PEXPIRE", &key, "1000"]);
        // A holder's copy is answered in the same way while others wait, and after `not_after`.
        lab.acquire(&attempt(2, 1));
        let late = a.not_after(1);
        assert_eq!(lab.acquire_as(mode, &late), Ok(Acquired::Granted(token)));
        assert!(lab.lock_ttl() > 20_000);
    }
}

#[test]
fn a_resend_of_a_waiter_keeps_its_place_and_refreshes_its_ticket() {
    let (mut lab, _, _) = Lab::held();
    let (b, c) = (attempt(2, 1), attempt(3, 1));
    lab.acquire(&b);
    lab.acquire(&c);
    let before = lab.now();
    lab.expire_ticket(&b);
    // `STALE` is only for attempts that neither hold nor wait.
    assert_eq!(lab.acquire(&b.clone().not_after(1)).queued(), 2);
    lab.assert_queue(&[&b, &c]);
    assert_eq!(lab.inspect().waiters, 2);
    let key = lab.keys[2].clone();
    let expiry: u64 = redis::cmd("ZSCORE").arg(key).arg(b.ticket()).query(&mut lab.connection).unwrap();
    let now = lab.now();
    assert!(expiry > now && expiry <= now.max(before) + TICKET_TTL);
}

#[test]
fn a_resend_of_the_first_waiter_takes_a_lock_that_has_come_free() {
    let (mut lab, _, first) = Lab::held();
    let b = attempt(2, 1);
    let inbox = lab.listen(2);
    lab.acquire(&b);
    lab.expire_hold();
    let token = lab.acquire(&b).token();
    assert!(token > first);
    assert_eq!(lab.read(&inbox), [""; 0], "the reply says it");
    lab.assert_queue(&[]);
}

#[test]
fn stale_when_neither_held_nor_queued() {
    for mode in ["try", "wait"] {
        let mut lab = Lab::new();
        let late = attempt(1, 1).not_after(lab.past());
        assert_eq!(lab.acquire_as(mode, &late), Ok(Acquired::Stale));
        assert_eq!(lab.server.keys(), [""; 0], "nothing was written");
        let in_time = late.not_after(lab.now() + 60_000);
        lab.acquire_as(mode, &in_time).unwrap().token();
        let late = attempt(2, 1).not_after(1);
        assert_eq!(lab.acquire_as(mode, &late), Ok(Acquired::Stale));
        lab.assert_queue(&[]);
        // By a millisecond.
        let mut lab = Lab::new();
        let before = lab.clock();
        let acquired = lab.acquire_as(mode, &attempt(1, 1).not_after(before.ms() - 1));
        assert!(acquired == Ok(Acquired::Stale) || !lab.ran_on_since(&before), "{acquired:?}");
    }
}

#[test]
fn no_barging_past_a_live_reachable_ticket() {
    for mode in ["try", "wait"] {
        let (mut lab, _, _) = Lab::held();
        let (b, c) = (attempt(2, 1), attempt(3, 1));
        let inbox = lab.listen(2);
        lab.acquire(&b);
        lab.expire_hold();
        match lab.acquire_as(mode, &c).unwrap() {
            Acquired::Busy { ttl, more: false } if mode == "try" => assert!((1..=LEASE as i64).contains(&ttl)),
            Acquired::Queued { ttl, length: 1, more: false } if mode == "wait" => assert!(ttl > 0),
            other => panic!("{mode}: {other:?}"),
        }
        lab.assert_holder(&b);
        let token = lab.inspect().token.parse().unwrap();
        assert_eq!(lab.read(&inbox), [grant(&b, token)]);
    }
}

#[test]
fn an_acquisition_passes_unreachable_waiters_and_their_tickets_stay() {
    for mode in ["try", "wait"] {
        let (mut lab, _, _) = Lab::held();
        let (b, c, d) = (attempt(2, 1), attempt(3, 1), attempt(4, 1));
        lab.acquire(&b);
        lab.acquire(&c);
        lab.expire_hold();
        lab.acquire_as(mode, &d).unwrap().token();
        lab.assert_holder(&d);
        lab.assert_queue(&[&b, &c]);
    }
}

#[test]
fn waiters_that_cannot_be_told_are_passed_by_one_that_can() {
    let (mut lab, a, _) = Lab::held();
    let (b, c) = (attempt(2, 1), attempt(3, 1));
    lab.acquire(&b);
    lab.acquire(&c);
    let inbox = lab.listen(3);
    assert_eq!(lab.release(&a), RELEASED);
    lab.assert_holder(&c);
    lab.assert_queue(&[&b]);
    assert_eq!(lab.read(&inbox).len(), 1);
}

#[test]
fn in_a_cluster_no_waiter_is_passed() {
    let (mut lab, a, _) = Lab::held();
    lab.counts_everyone = false;
    let (b, c) = (attempt(2, 1), attempt(3, 1));
    lab.acquire(&b);
    lab.acquire(&c);
    lab.listen(3);
    assert_eq!(lab.release(&a), RELEASED);
    lab.assert_holder(&b);
    lab.assert_queue(&[&c]);
}

#[test]
fn a_queue_of_expired_tickets_is_no_queue() {
    for mode in ["try", "wait"] {
        let (mut lab, _, _) = Lab::held();
        lab.listen(2);
        for n in 1..=3 {
            let dead = attempt(2, n);
            lab.acquire(&dead);
            lab.expire_ticket(&dead);
        }
        lab.expire_hold();
        lab.acquire_as(mode, &attempt(3, 1)).unwrap().token();
        lab.assert_queue(&[]);
    }
}

#[test]
fn a_lock_that_expired_by_itself_is_free() {
    let mut lab = Lab::new();
    let a = attempt(1, 1).lease(100);
    let first = lab.acquire(&a).token();
    let start = std::time::Instant::now();
    let token = loop {
        match lab.try_acquire(&attempt(2, 1)) {
            Acquired::Granted(token) => break token,
            other => assert!(other.busy() <= 100),
        }
        assert!(start.elapsed() < std::time::Duration::from_secs(10));
    };
    assert!(token > first);
    assert_eq!(lab.release(&a), NOT_HELD);
    lab.assert_holder(&attempt(2, 1));
}

#[test]
fn names_go_through_untouched() {
    let mut lab = Lab::new();
    for name in ["a b", "%7Bx%7D", "日本 ü", "a}:queue", "{", "'\"\\", "x:fence"] {
        lab.keys = keys_of(name);
        let (a, b) = (attempt(1, 1), attempt(2, 1));
        lab.acquire(&a).token();
        lab.acquire(&b).queued();
        let mut expected = keys_of(name).to_vec();
        expected.sort();
        let keys = lab.server.keys();
        let keys: Vec<_> = keys.into_iter().filter(|key| key.starts_with(&expected[0])).collect();
        assert_eq!(keys, expected);
        assert_eq!(lab.release(&a), RELEASED);
        assert_eq!(lab.cancel(&b), crate::lab::CANCELLED);
    }
}
