//! A hold that begins while nothing else is stored is stored short: a field of the hash, whose life is its lease.

use super::lab::{ALL, Changed, FENCE, LEASES, PERMITS, Permits, writer};
use crate::lab::{Acquired, Around, CANCEL_RELEASED, NOT_HELD, RELEASED, Released, State, attempt};

/// As many leases as one call ends.
const MAX_EXPIRED: u64 = 256;

#[test]
fn a_sole_hold_is_one_key_and_leaves_nothing() {
    let (mut lab, a) = (Permits::semaphore(3), attempt(1, 1).units(2).lease(20_000));
    lab.hold(&[&a]);
    assert_eq!(lab.server.keys(), [lab.keys[PERMITS].clone()]);
    assert!((15_000..=20_000).contains(&lab.ttl(PERMITS)));
    assert_eq!(lab.renew_one(&a.clone().lease(40_000)), 1);
    assert!((35_000..=40_000).contains(&lab.ttl(PERMITS)));
    assert_eq!(lab.release(&attempt(2, 1)), NOT_HELD);
    assert_eq!(lab.release(&a), RELEASED);
    assert_eq!(lab.server.keys(), [""; 0]);
    assert_eq!((lab.renew_one(&a), lab.release(&a)), (0, NOT_HELD));
    let (mut lab, w) = (Permits::read_write(), writer(1, 1));
    lab.hold(&[&w]);
    let hash = lab.keys[PERMITS].clone();
    lab.raw(&["PEXPIRE", &hash, "1"]);
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!((lab.renew_one(&w), lab.release(&w)), (0, NOT_HELD));
    assert_eq!(lab.server.keys(), [lab.keys[FENCE].clone()]);
}

/// Whoever comes second stores both in full. The lease of the first is what is left of it, to the millisecond.
#[test]
fn the_second_holder_stores_both_in_full() {
    for lease in [10_000, 90_000] {
        let mut lab = Permits::semaphore(3);
        let (a, b, c) = (attempt(1, 1).units(2), attempt(2, 1).lease(lease), attempt(3, 1));
        lab.hold(&[&a]);
        let (hash, leases) = (lab.keys[PERMITS].clone(), lab.keys[LEASES].clone());
        let ends = lab.ends_at(&hash);
        lab.hold(&[&b]);
        let score: f64 = redis::from_redis_value(lab.raw(&["ZSCORE", &leases, &a.id])).unwrap();
        assert!(score as u64 >= ends && score as u64 <= ends + 1000, "{score} for {ends}");
        assert_eq!(lab.raw_used(), 3);
        lab.assert_held(&[&a, &b]);
        let longest = i64::try_from(lease.max(30_000)).unwrap();
        for key in [PERMITS, LEASES] {
            assert!((longest - 5_000..=longest).contains(&lab.ttl(key)), "{lease} {}", lab.ttl(key));
        }
        lab.try_acquire(&c).busy();
        assert_eq!((lab.release(&a), lab.release(&b)), (RELEASED, RELEASED));
        assert_eq!(lab.server.keys(), [""; 0]);
    }
}

/// Some of them in the last millisecond of the first lease. Nothing is left for ever, whoever wins.
#[test]
fn the_second_holder_comes_when_the_first_lease_ends() {
    let mut lab = Permits::semaphore(2);
    lab.checked = false;
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    let (hash, leases) = (lab.keys[PERMITS].clone(), lab.keys[LEASES].clone());
    for _ in 0..300 {
        lab.hold(&[&a]);
        lab.raw(&["PEXPIRE", &hash, "1"]);
        while lab.ttl(PERMITS) > 0 {}
        lab.hold(&[&b]);
        for (key, ttl) in [(&hash, lab.ttl(PERMITS)), (&leases, lab.ttl(LEASES))] {
            assert!(ttl > 20_000 || key == &leases && ttl == -2, "{key} lives for {ttl}");
        }
        assert_eq!(lab.release(&b), RELEASED);
        lab.raw(&["DEL", &hash, &leases]);
    }
}

#[test]
fn every_call_knows_a_sole_hold() {
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    // Who waits for it is granted what it gives back.
    let mut lab = Permits::semaphore(1);
    lab.hold(&[&a]);
    lab.queue(&[&b]);
    lab.listen(2);
    assert_eq!(lab.release(&a), RELEASED);
    lab.assert_held(&[&b]);
    // The same, if it is the caller itself.
    let mut lab = Permits::semaphore(1);
    lab.hold(&[&a]);
    let next = attempt(1, 2);
    assert!(matches!(lab.release_and_queue(&a, Some(&next)), Ok(Released::Granted { .. })));
    lab.assert_held(&[&next]);
    // A request that comes twice, a heartbeat, a cancel.
    let mut lab = Permits::semaphore(1);
    lab.hold(&[&a.clone().lease(1_000)]);
    assert_eq!(lab.acquire(&a), Acquired::Granted(0));
    assert!(lab.inspect().holds[0].3 > 20_000);
    assert_eq!(lab.state(&a), State::Granted(0));
    let mut lab = Permits::semaphore(1);
    lab.hold(&[&a]);
    assert_eq!(lab.cancel(&a), CANCEL_RELEASED);
    lab.assert_held(&[]);
    // A limit counts what is held.
    let mut lab = Permits::semaphore(3);
    lab.hold(&[&a.clone().units(2)]);
    lab.set_limit(2);
    lab.try_acquire(&b).busy();
    assert_eq!(lab.release(&a.clone().units(2)), RELEASED);
    lab.hold(&[&b]);
    // The sole reader becomes the writer, and a reader again.
    let mut lab = Permits::read_write();
    let (w, r) = (writer(1, 2), attempt(1, 3));
    let read = lab.acquire(&a).token();
    let Changed::Changed { token, .. } = lab.change(&a, &w) else { panic!("somebody else reads") };
    assert!(token > read);
    lab.try_acquire(&b).busy();
    assert_eq!(lab.change(&w, &r).token(), token);
    lab.hold(&[&b]);
    lab.assert_held(&[&r, &b]);
}

/// What is stored in full takes memory. A server without any refuses the second holder, and ends the first one's hold.
#[test]
fn a_full_server_ends_a_sole_hold() {
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    for cancels in [false, true] {
        let mut lab = Permits::semaphore(2);
        lab.hold(&[&a]);
        lab.raw(&["CONFIG", "SET", "maxmemory", "1"]);
        for mode in ["try", "wait"] {
            lab.assert_refused("OOM", |lab| lab.acquire_as(mode, &b));
        }
        assert_eq!(lab.renew_one(&a), 1);
        match cancels {
            true => assert_eq!(lab.cancel(&a), CANCEL_RELEASED),
            false => assert_eq!(lab.release(&a), RELEASED),
        }
        assert_eq!(lab.server.keys(), [""; 0]);
    }
    let mut lab = Permits::semaphore(1);
    lab.hold(&[&a]);
    lab.raw(&["CONFIG", "SET", "maxmemory", "1"]);
    let next = attempt(1, 2);
    assert!(matches!(lab.release_and_queue(&a, Some(&next)), Ok(Released::Granted { .. })));
    assert_eq!(lab.release(&next), RELEASED);
}

/// A user that may not set a TTL leaves no lease for ever, and the hold is as it was.
#[test]
fn a_sole_hold_that_cannot_be_stored_in_full() {
    let mut lab = Permits::semaphore(2);
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    lab.hold(&[&a]);
    for refused in ["-pexpire", "-zadd", "-hset"] {
        lab.raw(&["ACL", "SETUSER", "default", refused]);
        for mode in ["try", "wait"] {
            assert_eq!(lab.acquire_as(mode, &b).unwrap_err(), "NOPERM", "{refused}");
        }
        lab.raw(&["ACL", "SETUSER", "default", "+@all"]);
        assert!(lab.ttl(LEASES) == -2 || lab.ttl(LEASES) > 20_000, "{refused}");
        lab.state(&b);
        lab.assert_held(&[&a]);
        assert_eq!(lab.release(&a), RELEASED, "{refused}");
        lab.hold(&[&a]);
    }
}

/// Leases that are over stay stored while nobody needs their place, as many as one call ends, and no more.
#[test]
fn leases_that_are_over_are_ended_before_they_are_many() {
    for units in [MAX_EXPIRED - 1, MAX_EXPIRED] {
        let mut lab = Permits::read_write();
        let readers: Vec<_> = (1..=units).map(|n| attempt(1, n)).collect();
        lab.hold(&readers.iter().collect::<Vec<_>>());
        lab.expire_hold(&readers[0]);
        lab.hold(&[&attempt(2, 1)]);
        let stored = if units < MAX_EXPIRED { units + 1 } else { units };
        assert_eq!(lab.raw_used(), stored);
        // Whoever needs the place gets it.
        for reader in &readers[1..] {
            lab.expire_hold(reader);
        }
        lab.release(&attempt(2, 1));
        assert!(matches!(lab.try_acquire(&attempt(3, 1).units(ALL)), Acquired::Granted(_)));
        lab.assert_held(&[&writer(3, 1)]);
    }
}
