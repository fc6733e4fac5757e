//! `once_begin`, `once_end` and `once_inspect`: every reply, late copies, half states, and what the scripts of the lock
//! do with a run.

use std::time::Duration;

use bowline::wire;

use crate::lab::{Attempt, CANCEL_GONE, CANCEL_RELEASED, LEASE, Lab, NOT_HELD, RELEASED, attempt};
use crate::refusals::Refusal;

/// A year of 366 days, in ms.
const YEAR: u64 = 366 * 24 * 60 * 60 * 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    Granted(u64),
    Busy,
    Stale,
}

impl Begun {
    #[track_caller]
    fn token(self) -> u64 {
        let Self::Granted(token) = self else { panic!("{self:?}") };
        token
    }
}

fn runs(period: u64, retries: bool) -> wire::Resource {
    runs_in((0, period), retries)
}

fn runs_in(period: (u64, u64), retries: bool) -> wire::Resource {
    wire::Resource::runs("p", "n", period, retries).unwrap()
}

/// A lab whose keys are those of runs: lock, queue, tickets, fence.
fn lab() -> Lab {
    let mut lab = Lab::new();
    lab.keys = runs(YEAR, false).keys();
    lab
}

fn tried(lab: &mut Lab, attempt: &Attempt, period: u64, retries: bool) -> Result<Begun, String> {
    begun(lab, &runs(period, retries).acquire(attempt.wire(), false))
}

fn begun(lab: &mut Lab, sent: &wire::Request) -> Result<Begun, String> {
    let keys: Vec<String> = sent.keys().into_iter().map(str::to_owned).collect();
    lab.run("once_begin", &keys, &sent.words(), false, |words| match &*words.word() {
        "GRANTED" => Begun::Granted(words.token()),
        "BUSY" => {
            let (ttl, more) = (words.next::<i64>(), words.flag());
            assert!(ttl >= -2 && !more);
            Begun::Busy
        }
        "STALE" => Begun::Stale,
        other => panic!("{other}"),
    })
}

/// With the longest period, so that the test is in one.
#[track_caller]
fn begin(lab: &mut Lab, attempt: &Attempt) -> Begun {
    tried(lab, attempt, YEAR, false).unwrap()
}

#[track_caller]
fn retry(lab: &mut Lab, attempt: &Attempt) -> Begun {
    tried(lab, attempt, YEAR, true).unwrap()
}

fn end_as(lab: &mut Lab, attempt: &Attempt, is_done: bool, least: u64) -> Result<bool, String> {
    end_in(lab, attempt, YEAR, is_done, least)
}

fn end_in(lab: &mut Lab, attempt: &Attempt, period: u64, is_done: bool, least: u64) -> Result<bool, String> {
    let sent = runs(period, false).end_run(attempt.wire(), is_done, Duration::from_millis(least)).unwrap();
    let keys: Vec<String> = sent.keys().into_iter().map(str::to_owned).collect();
    lab.run("once_end", &keys, &sent.words(), false, |words| {
        let was_held = words.word() == "RELEASED";
        assert!(!words.flag());
        was_held
    })
}

#[track_caller]
fn end(lab: &mut Lab, attempt: &Attempt) -> bool {
    end_as(lab, attempt, true, 0).unwrap()
}

/// The holder, the rest of its lease, and what is stored of the last run, without its token and times.
#[track_caller]
fn look(lab: &mut Lab) -> (String, i64, String) {
    let sent = runs(YEAR, false).inspect_run();
    let keys: Vec<String> = sent.keys().into_iter().map(str::to_owned).collect();
    let (holder, ttl, run) = lab
        .run("once_inspect", &keys, &sent.words(), false, |words| (words.word(), words.next(), words.word()))
        .unwrap();
    let parts: Vec<&str> = run.split(' ').collect();
    if let [token, began, ended, ..] = parts[..] {
        let [token, began, ended]: [u64; 3] = [token, began, ended].map(|number| number.parse().unwrap());
        assert!(token >= began * 1000 && (ended == 0 || ended >= began), "{run}");
    }
    (holder, ttl, parts.get(3..).unwrap_or_default().join(" "))
}

fn store(lab: &mut Lab, run: &str) {
    let fence = lab.keys[3].clone();
    lab.raw(&["SET", &fence, run, "PX", "3600000"]);
}

fn of(outcome: &str, attempt: &Attempt) -> String {
    format!("{outcome} {}", attempt.id)
}

#[test]
fn a_period_has_one_run() {
    let mut lab = lab();
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    let before = lab.now();
    let token = begin(&mut lab, &a).token();
    assert!((before * 1000..=(lab.now() + 1) * 1000).contains(&token));
    assert!((LEASE as i64 - 5000..=LEASE as i64).contains(&lab.ttl(0)));
    let (holder, ttl, run) = look(&mut lab);
    assert_eq!((holder, run), (a.id.clone(), of("running", &a)));
    assert!(ttl > 0 && ttl <= LEASE as i64);
    assert_eq!(begin(&mut lab, &b), Begun::Busy);
    assert!(end(&mut lab, &a));
    assert_eq!(look(&mut lab), (String::new(), -2, of("done", &a)));
    for attempt in [&a, &b] {
        assert_eq!((begin(&mut lab, attempt), retry(&mut lab, attempt)), (Begun::Busy, Begun::Busy));
    }
}

#[test]
fn what_is_known_of_a_run_outlives_the_next_period() {
    for (period, least) in [(1000, 65 * 60 * 1000), (YEAR, 2 * YEAR)] {
        let mut lab = lab();
        let a = attempt(1, 1);
        tried(&mut lab, &a, period, false).unwrap().token();
        let ttl = lab.ttl(3) as u64;
        assert!((least - 5000..=least).contains(&ttl), "{ttl}");
        assert!(end_in(&mut lab, &a, period, true, 0).unwrap());
        let ttl = lab.ttl(3) as u64;
        assert!((least - 5000..=least).contains(&ttl), "{ttl}");
    }
}

#[test]
fn the_next_period_has_a_run_unless_one_is_under_way() {
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    for outcome in ["done", "failed", "running"] {
        let mut lab = lab();
        // The period before is over.
        let last = (lab.now() - YEAR) * 1000;
        store(&mut lab, &format!("{last} {} 0 {}", last / 1000, of(outcome, &a)));
        assert!(begin(&mut lab, &b).token() > last);
        // It still runs.
        let late = attempt(3, 1);
        store(&mut lab, &format!("{last} {} 0 {}", last / 1000, of(outcome, &a)));
        assert_eq!(begin(&mut lab, &late), Begun::Busy);
    }
    // A period ends exactly when the next one begins.
    let mut lab = lab();
    let this = lab.now() / YEAR * YEAR * 1000;
    store(&mut lab, &format!("{this} {} 0 {}", this / 1000, of("done", &a)));
    assert_eq!(begin(&mut lab, &b), Begun::Busy);
    store(&mut lab, &format!("{} {} 0 {}", this - 1, this / 1000 - 1, of("done", &a)));
    begin(&mut lab, &b).token();
}

#[test]
fn a_run_that_has_not_ended_well_is_retried_by_those_who_want_to() {
    let (a, b, c) = (attempt(1, 1), attempt(2, 1), attempt(3, 1));
    for abandoned in [false, true] {
        let mut lab = lab();
        let first = begin(&mut lab, &a).token();
        assert_eq!(retry(&mut lab, &b), Begun::Busy, "it is under way");
        if abandoned {
            assert_eq!(lab.cancel(&a), CANCEL_RELEASED);
        } else {
            assert!(end_as(&mut lab, &a, false, 0).unwrap());
        }
        assert_eq!(look(&mut lab).2, of(if abandoned { "running" } else { "failed" }, &a));
        assert_eq!(begin(&mut lab, &b), Begun::Busy);
        // A late copy of the request for the first run begins no other.
        assert_eq!(retry(&mut lab, &a), Begun::Busy);
        let second = retry(&mut lab, &b).token();
        assert!(second > first);
        assert_eq!(look(&mut lab).2, of("running", &b));
        assert!(end(&mut lab, &b));
        assert_eq!(retry(&mut lab, &c), Begun::Busy);
    }
}

#[test]
fn copies_change_nothing() {
    let mut lab = lab();
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    let token = begin(&mut lab, &a).token();
    let stored = look(&mut lab).2;
    assert_eq!(begin(&mut lab, &a), Begun::Granted(token));
    assert_eq!(look(&mut lab).2, stored);
    // One that comes late finds its hold, and no other.
    let late = attempt(1, 1).not_after(1);
    assert_eq!(begin(&mut lab, &late), Begun::Granted(token));
    assert_eq!(begin(&mut lab, &attempt(3, 1).not_after(1)), Begun::Stale);
    assert!(!end(&mut lab, &b), "it has no run to end");
    let (holder, _, run) = look(&mut lab);
    assert_eq!((holder, run), (a.id.clone(), of("running", &a)));
    assert!(end(&mut lab, &a));
    let fence = lab.keys[3].clone();
    let ended = lab.raw(&["GET", &fence]);
    assert!(!end_as(&mut lab, &a, false, 60_000).unwrap());
    assert_eq!(lab.raw(&["GET", &fence]), ended);
    // A hold that was lost has no end to note.
    let c = attempt(4, 1);
    begin_again(&mut lab, &c);
    lab.expire_hold();
    assert!(!end(&mut lab, &c));
    assert_eq!(look(&mut lab).2, of("running", &c));
    // The end of a run that was abandoned, while another one is under way.
    begin_again(&mut lab, &b);
    assert!(!end(&mut lab, &a));
    let (holder, _, run) = look(&mut lab);
    assert_eq!((holder, run), (b.id.clone(), of("running", &b)));
}

/// Begins as if the run before had failed.
fn begin_again(lab: &mut Lab, attempt: &Attempt) {
    let last = lab.now() * 1000 - 1;
    store(lab, &format!("{last} {} 0 failed c9:1", last / 1000));
    retry(lab, attempt).token();
}

#[test]
fn a_run_holds_for_the_least_time_from_its_beginning() {
    let mut lab = lab();
    let a = attempt(1, 1);
    begin(&mut lab, &a).token();
    assert!(end_as(&mut lab, &a, true, 20_000).unwrap());
    let held = (format!("{}/least", a.id), of("done", &a));
    let ttl = look(&mut lab).1;
    assert!((10_000..=20_000).contains(&ttl), "{ttl}");
    // No late copy changes it: not of its end, of a renewal or of a clean-up.
    assert!(!end_as(&mut lab, &a, true, 0).unwrap());
    assert_eq!((lab.renew_one(&a), lab.cancel(&a), lab.release(&a)), (0, CANCEL_GONE, NOT_HELD));
    assert_eq!((begin(&mut lab, &a), retry(&mut lab, &attempt(2, 1))), (Begun::Busy, Begun::Busy));
    let (holder, left, run) = look(&mut lab);
    assert_eq!((holder, run), held);
    assert!((10_000..=ttl).contains(&left), "{left}");
    // A least time that is longer than the lease, and one that is over.
    for (least, lasts) in [(60_000, 50_000..=60_000), (0, -2..=-2)] {
        lab.del(0);
        begin_again(&mut lab, &a);
        assert!(end_as(&mut lab, &a, true, least).unwrap());
        assert!(lasts.contains(&look(&mut lab).1), "{least}");
        lab.del(3);
    }
}

/// The caller of a resend counts the lease from when it was sent.
#[test]
fn a_resend_begins_the_lease_anew() {
    let mut lab = lab();
    let a = attempt(1, 1);
    let token = begin(&mut lab, &a).token();
    let lock = lab.keys[0].clone();
    for (ttl, expected) in [("5000", 25_000..=30_000), ("90000", 80_000..=90_000)] {
        lab.raw(&["PEXPIRE", &lock, ttl]);
        assert_eq!(begin(&mut lab, &a), Begun::Granted(token));
        assert!(expected.contains(&lab.ttl(0)), "{ttl}: {}", lab.ttl(0));
    }
}

/// The token in the hold tells when the run began.
#[test]
fn an_end_tells_of_a_run_whose_counter_is_gone() {
    let mut lab = lab();
    let a = attempt(1, 1);
    let token = begin(&mut lab, &a).token();
    lab.del(3);
    assert_eq!(look(&mut lab).2, "");
    assert!(end_as(&mut lab, &a, true, 20_000).unwrap());
    let (_, ttl, run) = look(&mut lab);
    assert_eq!(run, of("done", &a));
    assert!((10_000..=20_000).contains(&ttl), "{ttl}");
    let fence = lab.keys[3].clone();
    let stored: String = redis::from_redis_value(lab.raw(&["GET", &fence])).unwrap();
    assert!(stored.starts_with(&format!("{token} {} ", token / 1000)), "{stored}");
    assert!(lab.ttl(3) as u64 > YEAR);
}

#[test]
fn a_clock_that_was_set_back_begins_no_period_twice() {
    let mut lab = lab();
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    let ahead = (lab.now() + 600_000) * 1000;
    store(&mut lab, &format!("{ahead} {} 0 {}", ahead / 1000, of("done", &a)));
    assert_eq!(tried(&mut lab, &b, 1000, false).unwrap(), Begun::Busy);
    store(&mut lab, &format!("{ahead} {} 0 {}", ahead / 1000, of("failed", &a)));
    assert_eq!(tried(&mut lab, &b, 1000, true).unwrap(), Begun::Granted(ahead + 1));
}

#[test]
fn what_no_script_wrote_is_no_run() {
    for garbage in
        ["", "1", "x y z done c1:1", "1 2 3 done", "1 2 3 DONE c1:1", "1 2 3 done c1:1 more", "-1 2 3 done c"]
    {
        let mut lab = lab();
        store(&mut lab, garbage);
        begin(&mut lab, &attempt(1, 1)).token();
    }
    for key in [0, 3] {
        let mut lab = lab();
        let name = lab.keys[key].clone();
        lab.set_wrong(&name);
        assert_eq!(tried(&mut lab, &attempt(1, 1), YEAR, false).unwrap_err(), "WRONGTYPE");
        assert_eq!(end_as(&mut lab, &attempt(1, 1), true, 0).unwrap_err(), "WRONGTYPE");
    }
}

#[test]
fn a_full_server_begins_no_run_and_ends_one() {
    let mut lab = lab();
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    lab.raw(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(tried(&mut lab, &a, YEAR, false).unwrap_err(), "OOM");
    assert_eq!(lab.server.keys(), [""; 0]);
    lab.raw(&["CONFIG", "SET", "maxmemory", "0"]);
    begin(&mut lab, &a).token();
    lab.raw(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(begin(&mut lab, &b), Begun::Busy);
    assert!(end(&mut lab, &a));
    assert_eq!(look(&mut lab), (String::new(), -2, of("done", &a)));
}

/// A run that could not be written down does not count, and its hold is the client's to cancel.
#[test]
fn a_run_that_is_refused_half_way_does_not_count() {
    let mut lab = lab();
    lab.checked = false;
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    for refused in ["-set", "-pexpire", "-hset"] {
        lab.raw(&["ACL", "SETUSER", "default", refused]);
        assert_eq!(tried(&mut lab, &a, YEAR, false).unwrap_err(), "NOPERM", "{refused}");
        lab.raw(&["ACL", "SETUSER", "default", "+@all"]);
        assert!(lab.ttl(0) == -2 || lab.ttl(0) > 0, "{refused}: it holds for ever");
        lab.cancel(&a);
        assert_eq!(lab.server.keys(), [""; 0]);
    }
    begin(&mut lab, &b).token();
}

#[test]
fn the_scripts_of_the_lock_renew_release_and_inspect_a_run() {
    let mut lab = lab();
    let a = attempt(1, 1).lease(60_000);
    let token = begin(&mut lab, &attempt(1, 1)).token();
    assert_eq!(lab.renew_one(&a), 1);
    assert!(lab.ttl(0) > 50_000);
    // A resend after that.
    assert_eq!(begin(&mut lab, &a), Begun::Granted(token));
    let inspected = lab.inspect();
    assert_eq!((inspected.holder, inspected.token), (a.id.clone(), token.to_string()));
    assert_eq!((lab.release(&a), lab.release(&a)), (RELEASED, NOT_HELD));
    assert_eq!(look(&mut lab), (String::new(), -2, of("running", &a)));
}

/// A server that takes no writes may know of a run that is over, or not of one that is under way.
#[test]
fn a_server_that_takes_no_writes_says_nothing_of_runs() {
    for (refusal, is_over) in Refusal::ALL.into_iter().flat_map(|refusal| [(refusal, false), (refusal, true)]) {
        let mut lab = Lab::on(Refusal::server());
        if !refusal.applies(&lab) {
            continue;
        }
        lab.keys = runs(YEAR, false).keys();
        let (a, b) = (attempt(1, 1), attempt(2, 1));
        begin(&mut lab, &a).token();
        // So that a resend has no lease to begin anew.
        let lock = lab.keys[0].clone();
        lab.raw(&["PEXPIRE", &lock, "90000"]);
        assert!(!is_over || end(&mut lab, &a));
        refusal.begin(&mut lab);
        for attempt in [&a, &b] {
            // A resend, and a call that finds another run.
            assert_eq!(tried(&mut lab, attempt, YEAR, false), Err(refusal.code()), "{refusal:?} {is_over}");
            assert_eq!(end_as(&mut lab, attempt, true, 0), Err(refusal.code()), "{refusal:?} {is_over}");
        }
        refusal.end(&mut lab);
        assert_eq!(end(&mut lab, &a), !is_over, "{refusal:?}");
    }
}

#[test]
fn the_least_time_is_not_longer_if_the_clock_was_set_back_in_the_run() {
    let mut lab = lab();
    let a = attempt(1, 1);
    let token = begin(&mut lab, &a).token();
    let later = lab.now() + 3_600_000;
    store(&mut lab, &format!("{token} {later} 0 {}", of("running", &a)));
    assert!(end_as(&mut lab, &a, true, 20_000).unwrap());
    let left = lab.ttl(0);
    assert!((10_000..=20_000).contains(&left), "{left}");
}

/// The client means one period, by an estimate of the server's clock.
#[test]
fn a_run_begins_in_the_period_that_was_meant_or_not_at_all() {
    const HOUR: u64 = 3_600_000;
    let in_period = |lab: &mut Lab, n: u32, first: u64, retries: bool| {
        let sent = runs_in((first, HOUR), retries).acquire(attempt(n, 1).wire(), false);
        begun(lab, &sent).unwrap()
    };
    let mut lab = lab();
    let now = lab.now();
    // It is over, or has not begun.
    for first in [now - 3 * HOUR / 2, now + HOUR / 2] {
        assert_eq!(in_period(&mut lab, 1, first, false), Begun::Busy, "{first} at {now}");
        assert_eq!(lab.server.keys(), [""; 0]);
    }
    // A period may begin at any time.
    let first = now - HOUR / 2 - 1;
    let token = in_period(&mut lab, 1, first, false).token();
    assert!((now * 1000..=lab.now() * 1000 + 1000).contains(&token));
    assert!(end_in(&mut lab, &attempt(1, 1), HOUR, true, 0).unwrap());
    assert_eq!(in_period(&mut lab, 2, first, true), Begun::Busy);
    // What is known of a run before it does not count.
    for (last, expected) in [(first * 1000 - 1, true), (first * 1000, false)] {
        store(&mut lab, &format!("{last} {} 0 {}", last / 1000, of("done", &attempt(3, 1))));
        assert_eq!(matches!(in_period(&mut lab, 4, first, false), Begun::Granted(_)), expected);
        lab.del(0);
    }
    // The clock was set back, so that the next token is in a later period.
    let last = (first + HOUR) * 1000;
    store(&mut lab, &format!("{last} {} 0 {}", last / 1000, of("failed", &attempt(3, 1))));
    assert_eq!(in_period(&mut lab, 5, first, true), Begun::Busy);
    assert_eq!(in_period(&mut lab, 5, first + HOUR, true), Begun::Granted(last + 1));
}
