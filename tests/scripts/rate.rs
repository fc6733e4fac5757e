//! `rate_take`, `rate_reset` and `rate_inspect`: every reply, what is stored and for how long, the clock, and servers
//! that refuse.

mod model;

use std::time::Duration;

use bowline::wire::{Limiter, Request};

use crate::lab::{Lab, PREFIX};
use crate::refusals::Refusal;

const NS_PER_MS: u64 = 1_000_000;

/// No test sees its end.
const HOUR: u64 = 3_600_000 * NS_PER_MS;

/// The longest burst and the longest wait: 31 days.
const LONGEST: u64 = 31 * 24 * HOUR;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    Taken { wait: u64, ahead: u64 },
    Limited { wait: u64, ahead: u64 },
    Stale,
}

fn limiter() -> Limiter {
    Limiter::new(PREFIX, "n").unwrap()
}

fn run<T>(lab: &mut Lab, request: &Request, read: impl FnOnce(&mut crate::lab::Words) -> T) -> Result<T, String> {
    let keys: Vec<String> = request.keys().into_iter().map(str::to_owned).collect();
    lab.run(request.script.name(), &keys, &request.words(), false, read)
}

fn tried(lab: &mut Lab, cost: u64, burst: u64, longest: u64, not_after: u64) -> Result<Taken, String> {
    let [cost, burst, longest] = [cost, burst, longest].map(Duration::from_nanos);
    run(lab, &limiter().take(cost, burst, longest, not_after), |words| match &*words.word() {
        "TAKEN" => Taken::Taken { wait: words.next(), ahead: words.next() },
        "LIMITED" => Taken::Limited { wait: words.next(), ahead: words.next() },
        "STALE" => Taken::Stale,
        other => panic!("{other}"),
    })
}

#[track_caller]
fn check(lab: &mut Lab, cost: u64, burst: u64) -> Taken {
    tried(lab, cost, burst, 0, 0).unwrap()
}

#[track_caller]
fn reserve(lab: &mut Lab, cost: u64, burst: u64, longest: u64) -> Taken {
    tried(lab, cost, burst, longest, 0).unwrap()
}

#[track_caller]
fn look(lab: &mut Lab) -> u64 {
    run(lab, &limiter().inspect(), |words| words.next()).unwrap()
}

/// `None`: it came too late.
fn reset(lab: &mut Lab, not_after: u64) -> Result<Option<bool>, String> {
    run(lab, &limiter().reset(not_after), |words| match &*words.word() {
        "RESET" => Some(words.flag()),
        "STALE" => None,
        other => panic!("{other}"),
    })
}

fn stored(lab: &mut Lab) -> Option<(u64, u64)> {
    let text: Option<String> = redis::from_redis_value(lab.raw(&["GET", limiter().key()])).unwrap();
    let text = text?;
    let (written, ahead) = text.split_once(' ').unwrap();
    Some((written.parse().unwrap(), ahead.parse().unwrap()))
}

/// As if this had been written so many milliseconds ago; a negative number is what a clock finds that was set back.
fn store(lab: &mut Lab, ms_ago: i64, ahead: u64) {
    let written = (lab.now() as i64 - ms_ago) * 1000;
    lab.raw(&["SET", limiter().key(), &format!("{written} {ahead}"), "PX", "3600000"]);
}

/// Of what was `ahead` before the last commands, which took less than ten seconds.
#[track_caller]
fn assert_lately(now: u64, ahead: u64) {
    assert!(now <= ahead && now + 10_000 * NS_PER_MS > ahead, "{now} of {ahead}");
}

#[test]
fn a_burst_is_taken_and_no_more() {
    let mut lab = Lab::new();
    assert_eq!((look(&mut lab), stored(&mut lab)), (0, None));
    let mut last = 0;
    for n in 1..=3 {
        let Taken::Taken { wait: 0, ahead } = check(&mut lab, HOUR, 3 * HOUR) else { panic!("{n}") };
        assert_lately(ahead, n * HOUR);
        assert!(ahead > last);
        last = ahead;
    }
    let before = stored(&mut lab);
    let Taken::Limited { wait, ahead } = check(&mut lab, HOUR, 3 * HOUR) else { panic!() };
    assert_eq!(wait, ahead - 2 * HOUR);
    assert_lately(ahead, last);
    assert_eq!(stored(&mut lab), before, "a refusal takes nothing");
    let seen = look(&mut lab);
    assert_lately(seen, ahead);
    assert_eq!(stored(&mut lab), before, "nor does a look");
    assert_eq!(lab.server.keys(), [limiter().key()]);
}

#[test]
fn what_is_written_is_the_clock_and_the_distance() {
    let mut lab = Lab::new();
    let before = lab.now() * 1000;
    let Taken::Taken { ahead, .. } = check(&mut lab, HOUR + 1, 2 * HOUR) else { panic!() };
    let (written, distance) = stored(&mut lab).unwrap();
    assert!((before..=(lab.now() + 1) * 1000).contains(&written), "{written}");
    assert_eq!((ahead, distance), (HOUR + 1, HOUR + 1), "to the nanosecond");
}

#[test]
fn the_cost_is_taken_as_a_whole_or_not_at_all() {
    let mut lab = Lab::new();
    assert_eq!(check(&mut lab, 2 * HOUR, 3 * HOUR), Taken::Taken { wait: 0, ahead: 2 * HOUR });
    assert!(matches!(check(&mut lab, 2 * HOUR, 3 * HOUR), Taken::Limited { wait, .. } if wait > 0 && wait <= HOUR));
    assert!(matches!(check(&mut lab, HOUR, 3 * HOUR), Taken::Taken { wait: 0, .. }));
}

#[test]
fn reservations_are_in_the_order_of_arrival() {
    let mut lab = Lab::new();
    let mut last = 0;
    for n in 0..5 {
        let Taken::Taken { wait, ahead } = reserve(&mut lab, HOUR, HOUR, LONGEST) else { panic!("{n}") };
        assert_lately(wait, n * HOUR);
        assert_eq!(wait, ahead - HOUR);
        assert!(n == 0 || wait > last + HOUR / 2);
        last = wait;
    }
    let before = stored(&mut lab);
    // No check passes them, and a reservation that would have to wait for longer takes nothing.
    assert!(matches!(check(&mut lab, HOUR, HOUR), Taken::Limited { .. }));
    let Taken::Limited { wait, .. } = reserve(&mut lab, HOUR, HOUR, 4 * HOUR) else { panic!() };
    assert_lately(wait, 5 * HOUR);
    assert_eq!(stored(&mut lab), before);
    assert!(matches!(reserve(&mut lab, HOUR, HOUR, 5 * HOUR), Taken::Taken { .. }), "the very time is enough");
}

/// The largest numbers that the library sends are exact.
#[test]
fn the_longest_times_are_exact() {
    let mut lab = Lab::new();
    assert_eq!(check(&mut lab, LONGEST, LONGEST), Taken::Taken { wait: 0, ahead: LONGEST });
    let Taken::Taken { wait, ahead } = reserve(&mut lab, LONGEST, LONGEST, LONGEST) else { panic!() };
    assert_lately(wait, LONGEST);
    assert_eq!(ahead, wait + LONGEST);
    let (_, distance) = stored(&mut lab).unwrap();
    assert_eq!(distance, ahead);
    assert!(matches!(check(&mut lab, 1, LONGEST), Taken::Limited { wait, .. } if wait > LONGEST - HOUR));
}

#[test]
fn the_key_lives_until_the_burst_is_there_again() {
    for (cost, ms) in [(HOUR, 3_600_000), (HOUR + 1, 3_600_001), (LONGEST, 31 * 24 * 3_600_000)] {
        let mut lab = Lab::new();
        check(&mut lab, cost, LONGEST);
        let ttl = lab.server.ttl_ms(limiter().key());
        assert!(ttl <= ms && ttl > ms - 10_000, "{ttl} of {ms}");
    }
    // Less than a millisecond is one.
    let mut lab = Lab::new();
    assert_eq!(check(&mut lab, 1, 1), Taken::Taken { wait: 0, ahead: 1 });
    while stored(&mut lab).is_some() {}
    assert_eq!((look(&mut lab), check(&mut lab, 1, 1)), (0, Taken::Taken { wait: 0, ahead: 1 }));
}

#[test]
fn time_gives_back_what_was_taken_and_no_more() {
    let mut lab = Lab::new();
    store(&mut lab, 3_600_000, 3 * HOUR);
    assert_lately(look(&mut lab), 2 * HOUR);
    assert!(matches!(check(&mut lab, HOUR, 3 * HOUR), Taken::Taken { wait: 0, .. }));
    assert!(matches!(check(&mut lab, HOUR, 3 * HOUR), Taken::Limited { .. }));
    // The clock was set forward, or nobody has come for long: there is one burst.
    store(&mut lab, 1000 * 3_600_000, 3 * HOUR);
    assert_eq!((look(&mut lab), check(&mut lab, 3 * HOUR, 3 * HOUR)), (0, Taken::Taken { wait: 0, ahead: 3 * HOUR }));
}

#[test]
fn a_clock_that_was_set_back_lets_nobody_wait_for_longer() {
    for back in [1, 1000 * 3_600_000] {
        let mut lab = Lab::new();
        store(&mut lab, -back - 60_000, 2 * HOUR);
        assert_eq!(look(&mut lab), 2 * HOUR);
        assert_eq!(check(&mut lab, HOUR, 2 * HOUR), Taken::Limited { wait: HOUR, ahead: 2 * HOUR });
        // From the first refusal on, this clock counts: else all would be refused until it has caught up.
        let (written, ahead) = stored(&mut lab).unwrap();
        assert!(written <= (lab.now() + 1) * 1000 && ahead == 2 * HOUR);
        store(&mut lab, -back - 60_000, 2 * HOUR);
        assert_eq!(reserve(&mut lab, HOUR, 2 * HOUR, HOUR), Taken::Taken { wait: HOUR, ahead: 3 * HOUR });
        // From now on, this clock counts.
        let (written, _) = stored(&mut lab).unwrap();
        assert!(written <= (lab.now() + 1) * 1000);
        assert_lately(look(&mut lab), 3 * HOUR);
    }
}

#[test]
fn quotas_share_one_time() {
    let mut lab = Lab::new();
    assert_eq!(check(&mut lab, HOUR, 10 * HOUR), Taken::Taken { wait: 0, ahead: HOUR });
    // One per hour and no burst: it is refused first.
    assert!(matches!(check(&mut lab, HOUR, HOUR), Taken::Limited { wait, .. } if wait <= HOUR));
    // Its rate is twice as high.
    let Taken::Taken { wait: 0, ahead } = check(&mut lab, HOUR / 2, 10 * HOUR) else { panic!() };
    assert_lately(ahead, HOUR + HOUR / 2);
}

#[test]
fn a_late_request_does_nothing() {
    let mut lab = Lab::new();
    assert_eq!(tried(&mut lab, HOUR, HOUR, 0, 1).unwrap(), Taken::Stale);
    assert_eq!(stored(&mut lab), None);
    let later = lab.now() + 60_000;
    assert!(matches!(tried(&mut lab, HOUR, HOUR, 0, later).unwrap(), Taken::Taken { .. }));
    let before = stored(&mut lab);
    assert_eq!((reset(&mut lab, 1).unwrap(), stored(&mut lab)), (None, before));
    let later = lab.now() + 60_000;
    assert_eq!(reset(&mut lab, later).unwrap(), Some(true));
}

#[test]
fn a_reset_forgets_all() {
    let mut lab = Lab::new();
    assert_eq!(reset(&mut lab, 0).unwrap(), Some(false));
    check(&mut lab, HOUR, HOUR);
    assert_eq!((reset(&mut lab, 0).unwrap(), stored(&mut lab)), (Some(true), None));
    assert_eq!(check(&mut lab, HOUR, HOUR), Taken::Taken { wait: 0, ahead: HOUR });
}

#[test]
fn what_no_script_wrote_counts_as_nothing() {
    for garbage in ["", "1", "x y", "1 x", "1 2 3", "-1 5", "1 -5", "1.5 2", " 1 2", "1 2 "] {
        let mut lab = Lab::new();
        lab.raw(&["SET", limiter().key(), garbage, "PX", "3600000"]);
        assert_eq!(look(&mut lab), 0, "{garbage:?}");
        assert_eq!(check(&mut lab, HOUR, HOUR), Taken::Taken { wait: 0, ahead: HOUR }, "{garbage:?}");
    }
    let mut lab = Lab::new();
    lab.set_wrong(limiter().key());
    assert_eq!(tried(&mut lab, HOUR, HOUR, 0, 0).unwrap_err(), "WRONGTYPE");
    assert_eq!(run(&mut lab, &limiter().inspect(), |words| words.next::<u64>()).unwrap_err(), "WRONGTYPE");
    // What is there is of no use to the limiter.
    assert_eq!(reset(&mut lab, 0).unwrap(), Some(true));
}

#[test]
fn a_server_that_takes_no_writes_gives_nothing() {
    for refusal in Refusal::ALL {
        let mut lab = Lab::on(Refusal::server());
        if !refusal.applies(&lab) {
            continue;
        }
        check(&mut lab, HOUR, 2 * HOUR);
        refusal.begin(&mut lab);
        let before = lab.dump();
        assert_eq!(tried(&mut lab, HOUR, 2 * HOUR, 0, 0), Err(refusal.code()));
        assert_eq!(reset(&mut lab, 0), Err(refusal.code()));
        before.assert_same(&lab.dump(), 0);
        refusal.end(&mut lab);
        assert!(matches!(check(&mut lab, HOUR, 2 * HOUR), Taken::Taken { .. }));
    }
}

#[test]
fn a_full_server_gives_nothing() {
    let mut lab = Lab::new();
    check(&mut lab, HOUR, 2 * HOUR);
    let before = stored(&mut lab);
    lab.raw(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(tried(&mut lab, HOUR, 2 * HOUR, 0, 0), Err("OOM".to_owned()));
    assert_eq!(stored(&mut lab), before);
    assert_lately(look(&mut lab), HOUR);
    assert_eq!(reset(&mut lab, 0).unwrap(), Some(true), "to delete takes no memory");
    lab.raw(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(check(&mut lab, HOUR, HOUR), Taken::Taken { wait: 0, ahead: HOUR });
}

/// A user who may do less than docs/acl.md says.
#[test]
fn without_a_right_nothing_is_taken() {
    for (rights, can_look) in
        [("~* +@all -set", true), ("~* +@all -get", false), ("~* +@all -time", false), ("~other:* +@all", false)]
    {
        let mut lab = Lab::new();
        let user: Vec<&str> =
            ["ACL", "SETUSER", "default", "resetkeys", "-@all"].into_iter().chain(rights.split(' ')).collect();
        lab.checked = false;
        lab.raw(&user);
        assert_eq!(tried(&mut lab, HOUR, HOUR, 0, 0), Err("NOPERM".to_owned()), "{rights}");
        let looked = run(&mut lab, &limiter().inspect(), |words| words.next::<u64>());
        assert_eq!(looked, if can_look { Ok(0) } else { Err("NOPERM".to_owned()) }, "{rights}");
        lab.raw(&["ACL", "SETUSER", "default", "~*", "+@all"]);
        assert_eq!(stored(&mut lab), None);
    }
}

/// The script's two commands, and the clock.
#[test]
fn a_check_costs_three_commands() {
    let mut lab = Lab::new();
    lab.checked = false;
    lab.count_commands();
    check(&mut lab, HOUR, HOUR);
    check(&mut lab, HOUR, HOUR);
    let executed = ["time", "get", "set"].map(|command| lab.executed(command));
    assert_eq!(executed, [2, 2, 1]);
}
