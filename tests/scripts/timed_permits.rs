//! The scripts of permits that expire, in Redisson's format: every reply, second and late copies, leases that are over,
//! what Java does meanwhile, what is published, refusals.

use std::time::Duration;

use bowline::wire::{self, Copy, Request, Resource, client};

use crate::lab::{Acquired, Around, Attempt, LEASE, Lab, Renewed, Words, attempt};
use crate::redisson::{Ear, run};
use crate::refusals::Refusal;

mod ends;
mod refused;

const NAME: &str = "java:n";
const LEASES: &str = "{java:n}:timeout";
const KEEP: Duration = Duration::from_secs(60);

/// What Redisson writes for a lease without an end.
const NEVER: &str = "922337203685477";

fn permits() -> Resource {
    Resource::timed_permit(NAME, KEEP).unwrap()
}

fn on(mut lab: Lab) -> Lab {
    lab.keys = vec![NAME.to_owned(), LEASES.to_owned()];
    lab
}

/// A semaphore with so many permits, and somebody who listens.
fn begun(free: u32) -> (Lab, Ear) {
    let mut lab = on(Lab::new());
    lab.raw(&["SET", NAME, &free.to_string()]);
    let ear = Ear::at(&lab, "PUBLISH", permits().channel());
    (lab, ear)
}

fn acquired(lab: &mut Lab, attempt: &Attempt) -> Result<Acquired, String> {
    let sent = permits().acquire(attempt.wire(), true);
    run(lab, "timed_acquire", &sent, |words| Acquired::read(&words.word(), words, Words::any_token))
}

#[track_caller]
fn acquire(lab: &mut Lab, attempt: &Attempt) -> Acquired {
    acquired(lab, attempt).unwrap()
}

/// Whether this call has ended the permit.
fn ended(lab: &mut Lab, sent: &Request) -> Result<bool, String> {
    run(lab, "timed_release", sent, |words| {
        let word = words.word();
        assert_eq!(words.next::<u64>(), 0);
        assert!(["RELEASED", "NOT_HELD"].contains(&&*word), "{word}");
        word == "RELEASED"
    })
}

/// By a guard that was granted by the only request.
fn release(lab: &mut Lab, attempt: &Attempt) -> Result<bool, String> {
    ended(lab, &permits().release(attempt.wire(), None).unwrap())
}

/// By an attempt whose request may still be on its way.
fn cancel(lab: &mut Lab, attempt: &Attempt) -> Result<bool, String> {
    let sent = permits().cancel(attempt.wire(), false);
    assert_eq!(sent.words(), permits().release_resent(attempt.wire()).unwrap().words());
    ended(lab, &sent)
}

/// For a call with the number n.
fn release_id(lab: &mut Lab, permit: &str, n: u64) -> Result<bool, String> {
    ended(lab, &permits().release_id(permit, attempt(9, n).wire(), KEEP))
}

fn renewed(lab: &mut Lab, attempt: &Attempt) -> Result<Renewed, String> {
    let args = [attempt.wire().permit(), attempt.lease.to_string(), "0".to_owned(), "0".to_owned()];
    lab.run("timed_renew", &[LEASES.to_owned()], &args, true, Words::renewed)
}

/// The n-th call, which may arrive within a minute.
fn copy(lab: &mut Lab, n: u64) -> Copy {
    let end = lab.now() + 60_000;
    Copy { client: client(8), n, not_after: end, known_until: end, resent: false }
}

/// Whether it was in time.
fn set(lab: &mut Lab, copy: Copy, new: u32) -> Result<bool, String> {
    run(lab, "timed_set", &permits().set_permits(copy, new), |words| words.word() == "SET")
}

/// What is free and what is taken, and the ids that are listed, with what is left of their leases.
type Looked = (u64, u64, Vec<(String, i64)>);

fn looked(lab: &mut Lab, listed: usize) -> Result<Looked, String> {
    let sent = permits().inspect_timed(listed);
    let keys: Vec<String> = sent.keys().into_iter().map(str::to_owned).collect();
    lab.run("timed_inspect", &keys, &sent.words(), true, |words| {
        let (free, taken) = (words.next(), words.next());
        let held = (0..words.left() / 2).map(|_| (words.word(), words.next())).collect();
        (free, taken, held)
    })
}

#[track_caller]
fn look(lab: &mut Lab) -> (u64, u64) {
    let (free, taken, held) = looked(lab, 1000).unwrap();
    assert_eq!(held.len() as u64, taken);
    (free, taken)
}

fn free(lab: &mut Lab) -> String {
    redis::cmd("GET").arg(NAME).query(&mut lab.connection).unwrap()
}

/// The bytes of a permit's id, which are text in these tests.
fn member(attempt: &Attempt) -> String {
    let digits = attempt.wire().permit();
    let bytes = (0..16).map(|n| u8::from_str_radix(&digits[2 * n..2 * n + 2], 16).unwrap());
    String::from_utf8(bytes.collect()).unwrap()
}

/// When the lease ends, in milliseconds from now; below zero if it is over.
fn left(lab: &mut Lab, attempt: &Attempt) -> Option<i64> {
    let ends: Option<i64> = redis::cmd("ZSCORE").arg(LEASES).arg(member(attempt)).query(&mut lab.connection).unwrap();
    ends.map(|ends| ends - lab.now() as i64)
}

/// The lease is over, and nobody has given the permit back.
fn lapse(lab: &mut Lab, attempt: &Attempt) {
    lab.lapse(LEASES, &member(attempt), 1);
}

/// By `expire()` of Java. Permits that outlived the counter would come back to one that is set anew.
#[test]
fn permits_live_no_longer_than_their_number() {
    let (mut lab, _) = begun(2);
    lab.raw(&["PEXPIRE", NAME, "50000"]);
    let a = attempt(1, 1).lease(600_000);
    assert_eq!(acquire(&mut lab, &a), Acquired::Granted(0));
    assert!((1..=50_000).contains(&lab.server.ttl_ms(LEASES)));
    renewed(&mut lab, &a).unwrap().unwrap();
    assert!(lab.server.ttl_ms(LEASES) <= 50_000);
    lab.raw(&["PERSIST", NAME]);
    lab.raw(&["PERSIST", LEASES]);
    assert_eq!(acquire(&mut lab, &attempt(2, 1)), Acquired::Granted(0));
    assert_eq!((lab.server.ttl_ms(NAME), lab.server.ttl_ms(LEASES)), (-1, -1));
}

#[test]
fn each_permit_is_taken_once() {
    let (mut lab, mut ear) = begun(2);
    let [a, b, c] = [1, 2, 3].map(|n| attempt(n, 1));
    for taken in [&a, &b] {
        assert_eq!(acquire(&mut lab, taken), Acquired::Granted(0));
        assert!((1..=LEASE as i64).contains(&left(&mut lab, taken).unwrap()));
    }
    assert!((1..=LEASE as i64).contains(&acquire(&mut lab, &c).busy()));
    assert_eq!((look(&mut lab), ear.heard(&mut lab)), ((0, 2), Vec::new()));
    assert_eq!(release(&mut lab, &c), Ok(false), "it has none");
    assert_eq!(release(&mut lab, &a), Ok(true));
    assert_eq!((look(&mut lab), ear.heard(&mut lab)), ((1, 1), vec!["1".to_owned()]));
    assert_eq!(acquire(&mut lab, &c), Acquired::Granted(0));
    for held in [&b, &c] {
        assert_eq!(release(&mut lab, held), Ok(true));
    }
    assert_eq!((look(&mut lab), ear.heard(&mut lab)), ((2, 0), vec!["1".to_owned(), "2".to_owned()]));
    assert_eq!(lab.server.keys(), [NAME], "no mark without a reason");
}

#[test]
fn without_permits_none_is_free() {
    let mut lab = on(Lab::new());
    let a = attempt(1, 1);
    assert_eq!(acquire(&mut lab, &a).busy(), -1);
    assert_eq!(looked(&mut lab, 5), Ok((0, 0, Vec::new())));
    assert_eq!(lab.server.keys(), Vec::<String>::new());
    lab.raw(&["SET", NAME, "-3"]);
    assert_eq!((acquire(&mut lab, &a).busy(), look(&mut lab)), (-1, (0, 0)));
}

#[test]
fn a_second_copy_takes_no_second_permit_and_shortens_no_lease() {
    let (mut lab, _) = begun(2);
    let (a, longer) = (attempt(1, 1), attempt(1, 1).lease(3 * LEASE));
    lab.twice(1000, |lab| assert_eq!(acquire(lab, &a), Acquired::Granted(0)));
    assert_eq!(look(&mut lab), (1, 1));
    assert_eq!(acquire(&mut lab, &longer), Acquired::Granted(0));
    assert!(left(&mut lab, &a).unwrap() > 2 * LEASE as i64);
    assert_eq!(acquire(&mut lab, &a), Acquired::Granted(0));
    assert!(left(&mut lab, &a).unwrap() > 2 * LEASE as i64);
    lab.twice(0, |lab| release(lab, &a).unwrap());
    assert_eq!(look(&mut lab), (2, 0));
}

#[test]
fn a_copy_that_comes_too_late_takes_nothing_and_prolongs_nothing() {
    let (mut lab, _) = begun(2);
    let a = attempt(1, 1);
    let late = a.clone().not_after(1);
    assert_eq!(acquire(&mut lab, &late), Acquired::Stale);
    assert_eq!(acquire(&mut lab, &a), Acquired::Granted(0));
    // Java may have another lease for it by now.
    let ends = (lab.now() + 500).to_string();
    lab.raw(&["ZADD", LEASES, "XX", &ends, &member(&a)]);
    assert_eq!(acquire(&mut lab, &late), Acquired::Stale);
    assert!(left(&mut lab, &a).unwrap() <= 500);
    let soon = lab.now() + 60_000;
    assert_eq!(acquire(&mut lab, &a.not_after(soon)), Acquired::Granted(0));
}

/// The client has given up, or has released what another copy took.
#[test]
fn a_copy_behind_the_end_of_its_permit_takes_nothing() {
    let (mut lab, mut ear) = begun(1);
    let [a, b] = [1, 2].map(|n| attempt(n, 1));
    assert_eq!(acquire(&mut lab, &a), Acquired::Granted(0));
    lab.twice(0, |lab| assert_eq!(cancel(lab, &a), Ok(true)));
    assert!((1..=KEEP.as_millis() as i64).contains(&acquire(&mut lab, &a).busy()));
    // The cancel overtakes the request.
    lab.twice(0, |lab| assert_eq!(cancel(lab, &b), Ok(false)));
    assert!((1..=KEEP.as_millis() as i64).contains(&acquire(&mut lab, &b).busy()));
    assert_eq!((look(&mut lab), ear.heard(&mut lab)), ((1, 0), vec!["1".to_owned()]));
    // Without a reason, nothing is remembered.
    let c = attempt(3, 1);
    assert_eq!(acquire(&mut lab, &c), Acquired::Granted(0));
    assert_eq!(release(&mut lab, &c), Ok(true));
    assert_eq!(acquire(&mut lab, &c), Acquired::Granted(0), "which is why a release says whether it was sent again");
    let marks = [&a, &b].map(|attempt| permits().mark(&attempt.wire().permit()));
    assert!(marks.iter().all(|mark| mark.starts_with("bowline:call:{java:n}:")));
    let mut left: Vec<_> = lab.server.keys();
    left.retain(|key| !marks.contains(key));
    assert_eq!(left, [NAME, LEASES]);
}

#[test]
fn a_lease_is_prolonged_and_never_shortened() {
    let (mut lab, _) = begun(1);
    let (a, shorter, other) = (attempt(1, 1).lease(3 * LEASE), attempt(1, 1), attempt(2, 1));
    assert_eq!(renewed(&mut lab, &a), Ok(Err(0)));
    assert_eq!(acquire(&mut lab, &shorter), Acquired::Granted(0));
    assert_eq!(renewed(&mut lab, &a), Ok(Ok(String::new())));
    assert!(left(&mut lab, &a).unwrap() > 2 * LEASE as i64);
    lab.twice(1, |lab| assert_eq!(renewed(lab, &shorter), Ok(Ok(String::new()))));
    assert!(left(&mut lab, &a).unwrap() > 2 * LEASE as i64);
    let before = left(&mut lab, &a).unwrap();
    assert_eq!(renewed(&mut lab, &a.clone().lease(0)), Ok(Ok(String::new())), "a look");
    assert!(left(&mut lab, &a).unwrap() <= before);
    assert_eq!(renewed(&mut lab, &other), Ok(Err(0)));
    lapse(&mut lab, &a);
    assert_eq!(renewed(&mut lab, &a), Ok(Err(0)));
    assert!(left(&mut lab, &a).unwrap() < 0, "what is over stays over");
}

/// Many names in one call.
#[test]
fn permits_of_several_names_are_renewed_together() {
    let (mut lab, _) = begun(1);
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    assert_eq!(acquire(&mut lab, &a), Acquired::Granted(0));
    lab.set_wrong("java:w");
    let keys = [LEASES, "{java:o}:timeout", "java:w", LEASES].map(str::to_owned);
    let args: Vec<String> = [&a, &a, &a, &b]
        .into_iter()
        .flat_map(|attempt| [attempt.wire().permit(), "60000".to_owned(), "0".to_owned(), "0".to_owned()])
        .collect();
    let states = lab.run("timed_renew", &keys, &args, true, |words| [(); 4].map(|()| words.renewed())).unwrap();
    assert_eq!(states, [Ok(String::new()), Err(0), Err(-1), Err(0)]);
    assert!(left(&mut lab, &a).unwrap() > LEASE as i64);
}

#[test]
fn the_number_of_permits_is_set_with_those_that_are_taken() {
    let (mut lab, mut ear) = begun(3);
    let [a, b] = [1, 2].map(|n| attempt(n, 1));
    for taken in [&a, &b] {
        assert_eq!(acquire(&mut lab, taken), Acquired::Granted(0));
    }
    let calls: Vec<_> = (1..6).map(|n| copy(&mut lab, n)).collect();
    lab.twice(0, |lab| assert_eq!(set(lab, calls[0], 7), Ok(true)));
    assert_eq!((look(&mut lab), ear.heard(&mut lab)), ((5, 2), vec!["5".to_owned()]));
    // A second copy does nothing, also if another call has set another number meanwhile.
    assert_eq!(set(&mut lab, calls[1], 1), Ok(true));
    assert_eq!((set(&mut lab, calls[0], 7), free(&mut lab).as_str()), (Ok(true), "-1"));
    assert_eq!(release(&mut lab, &a), Ok(true));
    assert_eq!((look(&mut lab), ear.heard(&mut lab)), ((0, 1), Vec::new()), "nobody is woken by no permit");
    // The same number as before: only a call that was sent before is remembered.
    let resent = Copy { resent: true, ..calls[3] };
    for (call, marked) in [(calls[2], false), (resent, true)] {
        assert_eq!(set(&mut lab, call, 1), Ok(true));
        let id = format!("{}:{}", call.client, call.n);
        assert_eq!(lab.server.keys().contains(&permits().mark(&id)), marked);
    }
    assert_eq!(set(&mut lab, Copy { not_after: 1, ..calls[4] }, 9), Ok(false), "too late");
    assert_eq!(look(&mut lab), (0, 1));
    lab.raw(&["DEL", NAME, LEASES]);
    let anew = copy(&mut lab, 9);
    assert_eq!((set(&mut lab, anew, 2), look(&mut lab)), (Ok(true), (2, 0)));
}

/// Its counter is also one of `RSemaphore`'s scripts, which set it first and add to it.
#[test]
fn the_counter_is_that_of_a_semaphore() {
    let semaphore = wire::SharedCounter::semaphore(NAME).unwrap();
    assert_eq!(semaphore.channel(), permits().channel());
    assert_eq!(permits().keys(), [NAME]);
    assert_eq!(permits().leases(), LEASES);
    let mut lab = on(Lab::new());
    let [first, more] = [1, 2].map(|n| copy(&mut lab, n));
    run(&mut lab, "shared_set", &semaphore.set(first, 1), |words| assert_eq!(words.word(), "SET")).unwrap();
    let add = semaphore.release(more, Some(2));
    run(&mut lab, "shared_release", &add, |words| assert_eq!(words.word(), "RELEASED")).unwrap();
    assert_eq!(look(&mut lab), (3, 0));
}
