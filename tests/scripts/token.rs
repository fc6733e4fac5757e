//! Fencing tokens grow, whatever happens to their counter.

use crate::lab::{Lab, Released, attempt};
use crate::permits::lab::{FENCE, Permits, writer};

fn fence(lab: &mut Lab) -> u64 {
    let key = lab.keys[3].clone();
    redis::cmd("GET").arg(key).query(&mut lab.connection).unwrap()
}

fn set_fence(lab: &mut Lab, value: &str) {
    let key = lab.keys[3].clone();
    lab.raw(&["SET", &key, value, "PX", "100000"]);
}

#[test]
fn hundreds_of_grants_by_every_way() {
    let mut lab = Lab::new();
    let (mut n, mut last, mut holder) = (0, 0, attempt(1, 0));
    let _inbox = lab.listen(2);
    for round in 0..300 {
        n += 1;
        let next = attempt(2, n).span(1 + round % 32);
        let token = match round % 4 {
            0 => {
                lab.release(&holder);
                lab.try_acquire(&next).token()
            }
            1 => {
                lab.acquire(&next);
                lab.release(&holder);
                lab.inspect().token.parse().unwrap()
            }
            2 => match lab.release_for(&holder, &next) {
                Released::Granted(token) => token,
                other => panic!("{other:?}"),
            },
            _ => {
                lab.acquire(&next);
                lab.expire_hold();
                lab.acquire(&next).token()
            }
        };
        assert!(token > last, "round {round}: {token} after {last}");
        assert_eq!(fence(&mut lab), token + u64::from(next.span) - 1, "a span is reserved");
        last = token + u64::from(next.span) - 1;
        holder = next;
    }
}

const HOUR: i64 = 3_600_000;
/// What a counter is given, so that the readers of five minutes need not extend its life.
const USUAL: i64 = HOUR + 300_000;

#[track_caller]
fn assert_life(ttl: i64, expected: i64) {
    assert!((expected - 30_000..=expected).contains(&ttl), "{ttl}, not {expected}");
}

/// An hour and five minutes, or twice the lease.
#[test]
fn a_counter_outlives_its_grant_but_not_for_long() {
    let mut lab = Lab::new();
    for (n, (lease, life)) in
        [(30_000, USUAL), (1_950_000, USUAL), (3_600_000, 2 * HOUR), (86_400_000, 48 * HOUR)].into_iter().enumerate()
    {
        let holder = attempt(1, n as u64 + 1).lease(lease);
        lab.acquire(&holder).granted();
        assert_life(lab.server.ttl_ms(&lab.keys[3]), life);
        lab.release(&holder);
    }
    // A holder whose lock was taken by force may trust its token until its lease ends.
    let holder = attempt(2, 1).lease(86_400_000);
    lab.acquire(&holder).granted();
    lab.force_release(&holder);
    assert_life(lab.server.ttl_ms(&lab.keys[3]), 48 * HOUR);
}

/// A short reader does not shorten the time to live that the counter of a long writer needs.
#[test]
fn a_reader_does_not_shorten_the_life_of_the_counter() {
    let mut lab = Permits::read_write();
    let long = writer(1, 1).lease(86_400_000);
    lab.hold(&[&long]);
    assert_life(lab.ttl(FENCE), 48 * HOUR);
    lab.release(&long);
    lab.hold(&[&attempt(2, 1)]);
    assert_life(lab.ttl(FENCE), 48 * HOUR);
    // It still prolongs the time to live. In a call for many holds, the longest lease counts.
    let mut lab = Permits::read_write();
    let write = writer(1, 1);
    lab.hold(&[&write]);
    assert_life(lab.ttl(FENCE), USUAL);
    let readers = [3_600_000, 7_200_000, 30_000].map(|lease| attempt(2, lease).lease(lease));
    lab.queue(&readers.iter().collect::<Vec<_>>());
    lab.listen(2);
    lab.release(&write);
    lab.assert_held(&readers.iter().collect::<Vec<_>>());
    assert_life(lab.ttl(FENCE), 4 * HOUR);
    // The next reader leaves a counter alone that lives for an hour, and extends the life of one that does not.
    let fence = lab.keys[FENCE].clone();
    for (n, (left, life)) in [(HOUR + 60_000, HOUR + 60_000), (HOUR - 60_000, USUAL)].into_iter().enumerate() {
        lab.raw(&["PEXPIRE", &fence, &left.to_string()]);
        lab.hold(&[&attempt(3, n as u64 + 1)]);
        assert_life(lab.ttl(FENCE), life);
    }
}

#[test]
fn a_span_is_not_given_out_twice() {
    let mut lab = Lab::new();
    let ahead = lab.clock().us + 1_000_000_000;
    set_fence(&mut lab, &ahead.to_string());
    let a = attempt(1, 1).span(32);
    assert_eq!(lab.acquire(&a).token(), ahead + 1);
    lab.release(&a);
    assert_eq!(lab.acquire(&attempt(1, 2)).token(), ahead + 33);
}

#[test]
fn a_counter_ahead_of_the_clock_counts_on() {
    let mut lab = Lab::new();
    let ahead = lab.clock().us + 1_000_000_000;
    set_fence(&mut lab, &ahead.to_string());
    for i in 1..=5 {
        let a = attempt(1, i);
        assert_eq!(lab.acquire(&a).token(), ahead + i);
        lab.release(&a);
    }
}

#[test]
fn a_lost_counter_starts_at_the_clock() {
    let mut lab = Lab::new();
    let mut last = lab.acquire(&attempt(1, 1)).token();
    let mut grows = |lab: &mut Lab, n| {
        let token = lab.acquire(&attempt(1, n)).token();
        assert!(token > last);
        last = token;
    };
    lab.del(0);
    lab.del(3);
    grows(&mut lab, 2);
    lab.raw(&["FLUSHALL"]);
    lab.reconnect();
    grows(&mut lab, 3);
    lab.server.restart();
    lab.reconnect();
    assert_eq!(lab.server.keys(), [""; 0]);
    grows(&mut lab, 4);
}

#[test]
fn with_a_log_on_disk_lock_queue_and_counter_survive_a_restart() {
    let args = ["--appendonly", "yes", "--appendfsync", "always"];
    let mut lab = Lab::on(crate::support::server::Server::start_with(&args));
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    let token = lab.acquire(&a).token();
    lab.acquire(&b);
    let before = lab.dump();
    lab.server.restart();
    lab.reconnect();
    before.assert_same(&lab.dump(), 0);
    let _inbox = lab.listen(2);
    lab.release(&a);
    lab.assert_holder(&b);
    assert!(lab.inspect().token.parse::<u64>().unwrap() > token);
}

#[test]
fn a_counter_that_is_not_ours_does_not_break_the_lock() {
    let junk = [
        "",
        "x",
        "nan",
        "inf",
        "-inf",
        "-5",
        "1e300",
        "9007199254740991",
        "9007199254740992",
        "99999999999999999999",
        "0x10",
        " 7 ",
        "1.5",
    ];
    let mut lab = Lab::new();
    for (n, junk) in junk.into_iter().enumerate() {
        set_fence(&mut lab, junk);
        let (before, a) = (lab.clock(), attempt(1, n as u64 + 1));
        let token = lab.acquire(&a).token();
        assert!(token >= before.us || !lab.ran_on_since(&before), "{junk:?}: {token}");
        lab.release(&a);
        let b = attempt(2, n as u64 + 1);
        assert!(lab.acquire(&b).token() > token, "{junk:?}");
        lab.release(&b);
    }
}

#[test]
fn a_grant_without_a_listener_takes_no_token_back() {
    let (mut lab, a, token) = Lab::held();
    lab.acquire(&attempt(2, 1));
    lab.release(&a);
    lab.assert_free();
    assert!(lab.acquire(&attempt(3, 1)).token() > token);
}
