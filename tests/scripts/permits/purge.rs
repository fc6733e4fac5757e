//! Expired leases, and keys of which half is gone: `used` is what the live holds hold.

use std::time::{Duration, Instant};

use bowline::wire;
use redis::Value;

use super::lab::{Acquired, Changed, LEASES, PERMITS, Permits, writer};
use crate::lab::{Acquired as Granted, CANCEL_GONE, NOT_HELD, RELEASED, State, attempt};

#[test]
fn an_expired_lease_makes_room_for_each_way_of_asking() {
    for mode in ["try", "wait"] {
        let mut lab = Permits::semaphore(2);
        let (a, b, c) = (attempt(1, 1), attempt(2, 1), attempt(3, 1));
        lab.hold(&[&a, &b]);
        lab.expire_hold(&b);
        assert_eq!(lab.acquire_as(mode, &c), Ok(Acquired::As(Granted::Granted(0))));
        lab.assert_held(&[&a, &c]);
        assert_eq!(lab.state(&b), State::Gone);
        assert_eq!(lab.renew_one(&b), 0);
        assert_eq!(lab.cancel(&b), CANCEL_GONE);
        lab.assert_held(&[&a, &c]);
    }
}

#[test]
fn a_full_queue_keeps_no_expired_hold() {
    let mut lab = Permits::semaphore(1);
    let [a, b, c, d] = [1, 2, 3, 4].map(|client| attempt(client, 1));
    lab.hold(&[&a]);
    lab.queue(&[&b, &c, &d]);
    lab.listen(2);
    lab.expire_hold(&a);
    let full = lab.acquire_as("wait", &attempt(5, 1).max_waiters(2));
    assert_eq!(full, Ok(Acquired::As(Granted::Full(2))));
    lab.assert_held(&[&b]);
    assert_eq!(lab.raw_used(), 1);
}

/// Another program has changed the sum. Once all holds are over, it is right again.
#[test]
fn expired_units_that_do_not_add_up() {
    let mut lab = Permits::semaphore(6);
    let (a, b, c) = (attempt(1, 1).units(3), attempt(2, 1).units(3), attempt(3, 1).units(6));
    lab.hold(&[&a, &b]);
    let permits = lab.keys[PERMITS].clone();
    lab.raw(&["HSET", &permits, "used", "4"]);
    lab.expire_hold(&a);
    lab.expire_hold(&b);
    assert_eq!(lab.try_acquire(&c), Granted::Granted(0));
    lab.assert_held(&[&c]);
    assert_eq!(lab.raw_used(), 6);
}

#[test]
fn an_expired_lease_wakes_the_waiter_that_heartbeats() {
    let mut lab = Permits::read_write();
    let (a, b) = (writer(1, 1), attempt(2, 1));
    lab.hold(&[&a]);
    lab.queue(&[&b]);
    lab.expire_hold(&a);
    assert!(matches!(lab.state(&b), State::Granted(_)));
    lab.assert_held(&[&b]);
    assert_eq!(lab.release(&a), NOT_HELD);
}

#[test]
fn a_lease_that_ends_by_itself() {
    let mut lab = Permits::semaphore(2);
    let (short, long) = (attempt(1, 1).lease(100), attempt(2, 1));
    lab.hold(&[&short, &long]);
    let start = Instant::now();
    let next = attempt(3, 1);
    while !matches!(lab.try_acquire(&next), Granted::Granted(0)) {
        assert!(start.elapsed() < Duration::from_secs(10));
    }
    lab.assert_held(&[&long, &next]);
}

/// A lease lasts to the end of its last millisecond, as long as a key. Whoever looks, renews or asks finds the same.
#[test]
fn over_is_what_ended_before_now() {
    let (mut lab, a, b) = (Permits::semaphore(1), attempt(1, 1), attempt(2, 1));
    // One transaction takes less than a millisecond most of the time. What is checked after each call would not.
    lab.checked = false;
    let mut ended_before = |ms: u64| {
        lab.hold(&[&a]);
        lab.store_in_full();
        let (site, before) = (lab.site(), lab.clock());
        let looks = wire::renew(&[(&site, a.clone().lease(0).wire())]).unwrap();
        let mut pipeline = redis::pipe();
        let end = pipeline.atomic().cmd("EVAL").arg(ENDS_BEFORE).arg(1).arg(&lab.keys[LEASES]);
        end.arg(ms).arg(&a.id).ignore();
        for request in [looks, site.inspect_permits(0), site.acquire(b.wire(), false)] {
            let keys = request.keys();
            pipeline.cmd("EVALSHA").arg(request.script.sha1()).arg(keys.len()).arg(keys).arg(request.words());
        }
        let [looked, inspected, asked]: [Value; 3] = pipeline.query(&mut lab.connection).unwrap();
        let ran_on = lab.ran_on_since(&before);
        lab.release(&a);
        lab.release(&b);
        let words = |reply: &Value| reply.as_sequence().map_or(0, <[Value]>::len);
        let refused =
            |reply: &Value| matches!(reply.as_sequence(), Some([Value::BulkString(word), ..]) if word == b"BUSY");
        // Held: its token, the four words of a hold, and a refusal.
        let token = matches!(looked.as_sequence(), Some([_, Value::BulkString(_)]));
        let held = [token, words(&inspected) == 5 + 4, refused(&asked)];
        (held, ran_on)
    };
    for _ in 0..100 {
        let (held, ran_on) = ended_before(1);
        assert!(held == [false; 3] || !ran_on, "{held:?}");
    }
    let start = Instant::now();
    while ended_before(0).0 != [true; 3] {
        assert!(start.elapsed() < Duration::from_secs(30), "a lease is over in its last millisecond");
    }
}

/// Lets the lease of a hold end so many milliseconds before now.
const ENDS_BEFORE: &str = "local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    redis.call('ZADD', KEYS[1], 'XX', now - ARGV[1], ARGV[2])";

#[test]
fn a_call_purges_within_bounds_and_the_calls_end() {
    let mut lab = Permits::semaphore(600);
    lab.checked = false;
    let holders: Vec<_> = (1..=600).map(|n| attempt(1, n)).collect();
    lab.hold(&holders.iter().collect::<Vec<_>>());
    for holder in &holders {
        lab.expire_hold(holder);
    }
    lab.checked = true;
    let all = attempt(2, 1).units(600);
    assert_eq!(lab.inspect().used, 0, "an expired hold does not count");
    assert_eq!(lab.try_acquire(&all), Granted::Busy { ttl: 0, more: true });
    assert_eq!(lab.raw_used(), 600 - 256);
    // An expired hold beyond the bound does not count either.
    assert_eq!(lab.renew_one(&holders[599]), 0);
    assert_eq!(lab.state(&holders[599]), State::Gone);
    assert!(matches!(lab.try_acquire(&all), Granted::Granted(0)));
    lab.assert_held(&[&all]);
}

#[test]
fn an_evicted_leases_key_ends_all_holds() {
    for stored in [false, true] {
        let mut lab = Permits::semaphore(3);
        if stored {
            lab.set_limit(2);
        }
        let (a, b) = (attempt(1, 1), attempt(2, 1));
        lab.hold(&[&a, &b]);
        lab.checked = false;
        lab.del(LEASES);
        assert_eq!((lab.inspect().used, lab.inspect().holds), (0, vec![]));
        assert_eq!((lab.renew_one(&a), lab.release(&a)), (0, NOT_HELD));
        lab.checked = true;
        let both = attempt(3, 1).units(2);
        lab.hold(&[&both]);
        lab.assert_held(&[&both]);
        assert_eq!(lab.inspect().limit, if stored { 2 } else { 3 });
        lab.try_acquire(&attempt(4, 1).units(2)).busy();
    }
}

#[test]
fn an_evicted_hash_ends_all_holds() {
    let mut lab = Permits::read_write();
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    lab.hold(&[&a, &b]);
    lab.checked = false;
    lab.del(PERMITS);
    assert_eq!((lab.renew_one(&a), lab.release(&b)), (0, NOT_HELD));
    lab.checked = true;
    lab.hold(&[&writer(3, 1)]);
    lab.assert_held(&[&writer(3, 1)]);
    // Acquisitions that arrive while one of the two keys is gone.
    for key in [PERMITS, LEASES] {
        for queue in [false, true] {
            let mut lab = Permits::read_write();
            lab.hold(&[&attempt(1, 1), &attempt(1, 2)]);
            if queue {
                lab.queue(&[&writer(2, 1)]);
                lab.listen(2);
            }
            lab.del(key);
            assert_eq!(lab.cancel(&attempt(1, 1)), CANCEL_GONE);
            let w = writer(2, 1);
            lab.assert_held(&if queue { vec![&w] } else { vec![] });
        }
    }
}

#[test]
fn absurd_counts_are_counted_anew() {
    for absurd in [None, Some("x"), Some(""), Some("-1"), Some("0"), Some("2.5"), Some("9999999")] {
        let mut lab = Permits::semaphore(4);
        let (a, b) = (attempt(1, 1).units(2), attempt(2, 1));
        lab.hold(&[&a, &b]);
        let key = lab.keys[PERMITS].clone();
        match absurd {
            Some(absurd) => lab.raw(&["HSET", &key, "used", absurd]),
            None => lab.raw(&["HDEL", &key, "used"]),
        };
        lab.try_acquire(&attempt(3, 1).units(2)).busy();
        lab.assert_held(&[&a, &b]);
        assert_eq!(lab.raw_used(), 3, "{absurd:?}");
        assert_eq!((lab.release(&a), lab.release(&b)), (RELEASED, RELEASED));
        assert_eq!(lab.server.keys(), [""; 0]);
    }
}

/// One of two entries is missing: it is no hold, and the others stay.
#[test]
fn half_a_hold_is_none() {
    for key in [PERMITS, LEASES] {
        let mut lab = Permits::semaphore(3);
        let (a, b) = (attempt(1, 1).units(2), attempt(2, 1));
        lab.hold(&[&a, &b]);
        let command = if key == PERMITS { "HDEL" } else { "ZREM" };
        let name = lab.keys[key].clone();
        lab.raw(&[command, &name, &a.id]);
        lab.checked = false;
        assert_eq!(lab.renew_one(&a), 0);
        lab.checked = true;
        let next = attempt(3, 1).units(2);
        lab.hold(&[&next]);
        lab.assert_held(&[&b, &next]);
        assert_eq!(lab.release(&a), NOT_HELD);
    }
}

/// A count that is too low must not let the last release delete what others hold.
#[test]
fn a_release_that_brings_the_count_to_nothing_counts_again() {
    let mut lab = Permits::semaphore(4);
    let (a, b) = (attempt(1, 1).units(2), attempt(2, 1).units(2));
    lab.hold(&[&a, &b]);
    let key = lab.keys[PERMITS].clone();
    lab.raw(&["HSET", &key, "used", "2"]);
    assert_eq!(lab.release(&a), RELEASED);
    lab.assert_held(&[&b]);
    lab.try_acquire(&attempt(3, 1).units(3)).busy();
}

/// More leases are over than one call may end: whether anybody else reads takes a second look.
#[test]
fn an_upgrade_past_many_expired_readers() {
    for alone in [true, false] {
        let mut lab = Permits::read_write();
        let (r, w, other) = (attempt(1, 1), writer(1, 2), attempt(3, 1));
        lab.hold(&[&r]);
        if !alone {
            lab.hold(&[&other]);
        }
        lab.checked = false;
        let dead: Vec<_> = (0..300).map(|n| attempt(2, n)).collect();
        lab.hold(&dead.iter().collect::<Vec<_>>());
        for reader in &dead {
            lab.expire_hold(reader);
        }
        lab.checked = true;
        // The answer is not final yet.
        assert_eq!(lab.change(&r, &w), Changed::Busy { more: true });
        assert_eq!((lab.renew_one(&r), lab.renew_one(&w)), (1, 0));
        if alone {
            lab.change(&r, &w).token();
            lab.assert_held(&[&w]);
        } else {
            assert_eq!(lab.change(&r, &w), Changed::Busy { more: false });
            lab.assert_held(&[&attempt(1, 2), &other]);
        }
    }
}
