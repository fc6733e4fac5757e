//! The scripts of semaphores in Redisson's format: every reply, second and late copies, what is published, refusals.

use bowline::wire::{Copy, SharedCounter, client};

use crate::lab::{Around, Lab, Words};
use crate::redisson::{Ear, run};
use crate::refusals::Refusal;

const NAME: &str = "java:n";

fn semaphore() -> SharedCounter {
    SharedCounter::semaphore(NAME).unwrap()
}

fn lab() -> Lab {
    on(Lab::new())
}

fn on(mut lab: Lab) -> Lab {
    lab.keys = vec![NAME.to_owned()];
    lab
}

fn ear(lab: &Lab) -> Ear {
    Ear::at(lab, "PUBLISH", semaphore().channel())
}

/// The first copy of the n-th call, which may arrive within a minute.
fn copy(lab: &mut Lab, n: u64) -> Copy {
    let end = lab.now() + 60_000;
    Copy { client: client(1), n, not_after: end, known_until: end, resent: false }
}

fn set(lab: &mut Lab, copy: Copy, permits: u32) -> Result<String, String> {
    run(lab, "shared_set", &semaphore().set(copy, permits), |words| words.word())
}

/// How many were taken; `None` if it was too late.
fn take(lab: &mut Lab, copy: Copy, permits: u32) -> Result<Option<u64>, String> {
    run(lab, "shared_take", &semaphore().take(copy, permits, false), |words| match &*words.word() {
        "TAKEN" => Some(words.next()),
        "STALE" => None,
        other => panic!("{other}"),
    })
}

/// Whether it was in time.
fn release(lab: &mut Lab, copy: Copy, permits: Option<i64>) -> Result<bool, String> {
    run(lab, "shared_release", &semaphore().release(copy, permits), |words: &mut Words| words.word() == "RELEASED")
}

fn look(lab: &mut Lab) -> Result<u64, String> {
    let sent = semaphore().count();
    let keys: Vec<String> = sent.keys().into_iter().map(str::to_owned).collect();
    lab.run("shared_count", &keys, &sent.words(), true, |words| words.next())
}

fn stored(lab: &mut Lab) -> String {
    redis::cmd("GET").arg(NAME).query(&mut lab.connection).unwrap()
}

/// A semaphore with so many permits, and somebody who listens.
fn begun(permits: u32) -> (Lab, Ear) {
    let mut lab = lab();
    let first = copy(&mut lab, 1000);
    assert_eq!(set(&mut lab, first, permits).unwrap(), "SET");
    let ear = ear(&lab);
    (lab, ear)
}

#[test]
fn permits_are_set_once_and_announced() {
    let mut lab = lab();
    let mut ear = ear(&lab);
    let [first, second] = [1, 2].map(|n| copy(&mut lab, n));
    lab.twice(0, |lab| assert_eq!(set(lab, first, 3).unwrap(), "SET"));
    assert_eq!(set(&mut lab, second, 5).unwrap(), "EXISTS");
    assert_eq!((look(&mut lab), ear.heard(&mut lab)), (Ok(3), vec!["3".to_owned()]));
}

#[test]
fn takes_all_that_are_wanted_or_none() {
    let (mut lab, mut ear) = begun(3);
    let copies: Vec<_> = (1..7).map(|n| copy(&mut lab, n)).collect();
    assert_eq!(take(&mut lab, copies[0], 2), Ok(Some(2)));
    assert_eq!(take(&mut lab, copies[1], 2), Ok(Some(0)));
    assert_eq!(take(&mut lab, copies[2], 1), Ok(Some(1)));
    assert_eq!((take(&mut lab, copies[3], 1), look(&mut lab)), (Ok(Some(0)), Ok(0)));
    assert_eq!(stored(&mut lab), "0", "the key stays, as in Redisson");
    assert_eq!(ear.heard(&mut lab), Vec::<String>::new());
    // Without a semaphore, there is none.
    lab.raw(&["DEL", NAME]);
    assert_eq!((take(&mut lab, copies[4], 1), take(&mut lab, copies[5], 0)), (Ok(Some(0)), Ok(Some(0))));
    assert!(!lab.server.keys().contains(&NAME.to_owned()));
}

#[test]
fn drains_what_is_there() {
    let (mut lab, _) = begun(5);
    let [first, second] = [1, 2].map(|n| copy(&mut lab, n));
    lab.twice(0, |lab| assert_eq!(take(lab, first, 0), Ok(Some(5))));
    assert_eq!(take(&mut lab, second, 0), Ok(Some(0)));
    // A second copy is answered like the first, also when others have given some since.
    let given = copy(&mut lab, 3);
    assert_eq!(release(&mut lab, given, Some(2)), Ok(true));
    assert_eq!((take(&mut lab, first, 0), look(&mut lab)), (Ok(Some(5)), Ok(2)));
}

/// A full server gives permits back, however many a lost answer may have taken, and none is taken there.
#[test]
fn a_full_server_gives_back() {
    let (mut lab, mut ear) = begun(3);
    let [first, second, lost, third, back] = [1, 2, 3, 4, 5].map(|n| copy(&mut lab, n));
    assert_eq!((take(&mut lab, first, 1), take(&mut lab, second, 1)), (Ok(Some(1)), Ok(Some(1))));
    lab.raw(&["CONFIG", "SET", "maxmemory", "1"]);
    lab.assert_refused("OOM", |lab| take(lab, third, 1));
    lab.assert_refused("OOM", |lab| release(lab, back, Some(-1)));
    assert_eq!((release(&mut lab, first, Some(1)), release(&mut lab, second, None)), (Ok(true), Ok(true)));
    assert_eq!(release(&mut lab, lost, None), Ok(true), "it has taken none");
    lab.raw(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!((look(&mut lab), ear.heard(&mut lab)), (Ok(3), vec!["2".to_owned(), "3".to_owned()]));
}

/// Java counts in 32 bits, and somebody may have stored more.
#[test]
fn drains_no_more_than_a_call_may_take() {
    let mut lab = lab();
    lab.raw(&["SET", NAME, "4294967300"]);
    let calls: Vec<_> = (1..4).map(|n| copy(&mut lab, n)).collect();
    for (call, taken) in calls.into_iter().zip([2_147_483_647, 2_147_483_647, 6]) {
        lab.twice(0, |lab| assert_eq!(take(lab, call, 0), Ok(Some(taken))));
    }
    assert_eq!(look(&mut lab), Ok(0));
}

#[test]
fn a_release_counts_once_and_says_how_many_there_are() {
    let (mut lab, mut ear) = begun(4);
    let [taken, other, given] = [1, 2, 3].map(|n| copy(&mut lab, n));
    lab.twice(0, |lab| assert_eq!(take(lab, taken, 3), Ok(Some(3))));
    assert_eq!(take(&mut lab, other, 1), Ok(Some(1)));
    // By the call that has taken them.
    lab.twice(0, |lab| assert_eq!(release(lab, taken, Some(3)), Ok(true)));
    assert_eq!((look(&mut lab), ear.heard(&mut lab)), (Ok(3), vec!["3".to_owned()]));
    // By a call of its own, also if nobody had them.
    lab.twice(0, |lab| assert_eq!(release(lab, given, Some(7)), Ok(true)));
    assert_eq!((look(&mut lab), ear.heard(&mut lab)), (Ok(10), vec!["10".to_owned()]));
    assert_eq!(take(&mut lab, taken, 3), Ok(Some(0)), "a copy of a call that has given back");
    // When the mark has gone, who knows that it holds gives back all the same.
    lab.raw(&["DEL", &semaphore().mark(other)]);
    lab.twice(0, |lab| assert_eq!(release(lab, other, Some(1)), Ok(true)));
    assert_eq!(look(&mut lab), Ok(11));
    // A semaphore that was deleted has what is given.
    lab.raw(&["DEL", NAME]);
    let late = copy(&mut lab, 4);
    assert_eq!((release(&mut lab, late, Some(2)), look(&mut lab)), (Ok(true), Ok(2)));
}

/// Who does not know whether it has taken any asks the mark.
#[test]
fn what_was_given_up_is_given_back_once() {
    let (mut lab, mut ear) = begun(5);
    let [taken, refused, never] = [1, 2, 3].map(|n| copy(&mut lab, n));
    assert_eq!(take(&mut lab, taken, 4), Ok(Some(4)));
    lab.twice(0, |lab| assert_eq!(release(lab, taken, None), Ok(true)));
    assert_eq!((look(&mut lab), ear.heard(&mut lab)), (Ok(5), vec!["5".to_owned()]));
    // A drain says how many.
    let all = copy(&mut lab, 4);
    assert_eq!(take(&mut lab, all, 0), Ok(Some(5)));
    assert_eq!(take(&mut lab, refused, 1), Ok(Some(0)));
    for gives_up in [refused, all] {
        lab.twice(0, |lab| assert_eq!(release(lab, gives_up, None), Ok(true)));
    }
    assert_eq!((look(&mut lab), ear.heard(&mut lab)), (Ok(5), vec!["5".to_owned()]));
    // The request overtakes the one that it is about.
    assert_eq!(release(&mut lab, never, None), Ok(true));
    for late in [never, refused] {
        lab.twice(0, |lab| assert_eq!(take(lab, late, 1), Ok(Some(0))));
    }
    assert_eq!((look(&mut lab), ear.heard(&mut lab)), (Ok(5), Vec::new()));
}

/// The second copy found none, and the first one comes when there are some.
#[test]
fn a_first_copy_that_comes_last_takes_nothing() {
    let (mut lab, _) = begun(1);
    let [other, taken, given] = [1, 2, 3].map(|n| copy(&mut lab, n));
    assert_eq!(take(&mut lab, other, 1), Ok(Some(1)));
    assert_eq!(take(&mut lab, Copy { resent: true, ..taken }, 1), Ok(Some(0)));
    assert_eq!(release(&mut lab, given, Some(1)), Ok(true));
    assert_eq!((take(&mut lab, taken, 1), look(&mut lab)), (Ok(Some(0)), Ok(1)));
}

#[test]
fn permits_are_taken_away_also_those_that_are_not_there() {
    let (mut lab, mut ear) = begun(3);
    let [less, more, taken] = [1, 2, 3].map(|n| copy(&mut lab, n));
    lab.twice(0, |lab| assert_eq!(release(lab, less, Some(-5)), Ok(true)));
    assert_eq!((stored(&mut lab).as_str(), look(&mut lab)), ("-2", Ok(0)));
    assert_eq!(take(&mut lab, taken, 0), Ok(Some(0)));
    lab.twice(0, |lab| assert_eq!(release(lab, more, Some(2)), Ok(true)));
    assert_eq!((stored(&mut lab).as_str(), ear.heard(&mut lab)), ("0", Vec::new()), "nobody is woken by no permit");
}

#[test]
fn a_copy_that_comes_too_late_does_nothing() {
    let (mut lab, _) = begun(3);
    let [one, other] = [1, 2].map(|n| Copy { not_after: 1, ..copy(&mut lab, n) });
    assert_eq!((take(&mut lab, one, 1), look(&mut lab)), (Ok(None), Ok(3)));
    assert_eq!((release(&mut lab, other, Some(1)), look(&mut lab)), (Ok(false), Ok(3)));
    // What was executed before is answered, however late the copy is.
    let taken = copy(&mut lab, 3);
    assert_eq!(take(&mut lab, taken, 2), Ok(Some(2)));
    assert_eq!(take(&mut lab, Copy { not_after: 1, ..taken }, 2), Ok(Some(2)));
    assert_eq!(release(&mut lab, Copy { not_after: 1, ..taken }, Some(2)), Ok(false));
    assert_eq!(look(&mut lab), Ok(1));
}

#[test]
fn a_time_to_live_of_java_stays() {
    let mut lab = lab();
    lab.raw(&["SET", NAME, "3", "PX", "60000"]);
    let [taken, all] = [1, 2].map(|n| copy(&mut lab, n));
    assert_eq!(take(&mut lab, taken, 1), Ok(Some(1)));
    assert_eq!(take(&mut lab, all, 0), Ok(Some(2)));
    assert_eq!(release(&mut lab, taken, Some(1)), Ok(true));
    assert!(lab.ttl(0) > 30_000);
}

#[test]
fn what_finds_no_permit_leaves_nothing() {
    let mut lab = lab();
    let taken = copy(&mut lab, 1);
    assert_eq!(take(&mut lab, taken, 1), Ok(Some(0)));
    assert_eq!(lab.server.keys(), Vec::<String>::new());
}

#[test]
fn a_key_that_is_no_number_is_an_error_and_stays() {
    let refused = |lab: &mut Lab| {
        let copies: Vec<_> = (1..5).map(|n| copy(lab, n)).collect();
        lab.assert_refused("WRONGTYPE", |lab| set(lab, copies[0], 1));
        lab.assert_refused("WRONGTYPE", |lab| take(lab, copies[1], 1));
        lab.assert_refused("WRONGTYPE", |lab| release(lab, copies[2], Some(1)));
        assert_eq!(look(lab), Err("WRONGTYPE".to_owned()));
        // Who has taken none gives none back.
        assert_eq!(release(lab, copies[3], None), Ok(true));
    };
    for text in ["x", "1.5", "1000000000000000"] {
        let mut lab = lab();
        lab.raw(&["SET", NAME, text]);
        refused(&mut lab);
    }
}

#[test]
fn a_server_that_takes_no_writes_says_nothing() {
    for refusal in Refusal::ALL {
        let mut lab = on(Lab::on(Refusal::server()));
        if !refusal.applies(&lab) {
            continue;
        }
        let copies: Vec<_> = (1..9).map(|n| copy(&mut lab, n)).collect();
        assert_eq!(set(&mut lab, copies[0], 2).unwrap(), "SET");
        assert_eq!(take(&mut lab, copies[1], 1), Ok(Some(1)));
        refusal.begin(&mut lab);
        assert_eq!(take(&mut lab, copies[2], 1), Err(refusal.code()));
        assert_eq!(take(&mut lab, copies[3], 5), Err(refusal.code()), "more may be free at its master");
        assert_eq!(take(&mut lab, copies[1], 1), Err(refusal.code()), "also to a second copy");
        assert_eq!(release(&mut lab, copies[1], Some(1)), Err(refusal.code()));
        assert_eq!(release(&mut lab, copies[4], None), Err(refusal.code()));
        assert_eq!(release(&mut lab, copies[5], Some(-1)), Err(refusal.code()));
        refusal.end(&mut lab);
        assert_eq!(look(&mut lab), Ok(1));
        assert_eq!(release(&mut lab, copies[1], Some(1)), Ok(true));
        assert_eq!(look(&mut lab), Ok(2));
    }
}

#[test]
fn without_the_right_to_publish_nothing_changes() {
    let (mut lab, _) = begun(3);
    let [taken, given, tried, up] = [1, 2, 3, 4].map(|n| copy(&mut lab, n));
    assert_eq!(take(&mut lab, taken, 1), Ok(Some(1)));
    assert_eq!(take(&mut lab, up, 1), Ok(Some(1)));
    lab.raw(&["ACL", "SETUSER", "default", "resetchannels"]);
    lab.assert_refused("NOPERM", |lab| release(lab, taken, Some(1)));
    lab.assert_refused("NOPERM", |lab| release(lab, given, Some(1)));
    lab.assert_refused("NOPERM", |lab| release(lab, up, None));
    let tries = semaphore().take(tried, 1, true);
    lab.assert_refused("NOPERM", |lab| run(lab, "shared_take", &tries, |words| words.word()));
    lab.raw(&["ACL", "SETUSER", "default", "allchannels"]);
    for (copy, permits) in [(taken, Some(1)), (given, Some(1)), (up, None)] {
        assert_eq!(release(&mut lab, copy, permits), Ok(true));
    }
    assert_eq!(look(&mut lab), Ok(4));
}

/// Nor without the right to count: the mark is what it was, and nobody is woken.
#[test]
fn without_the_right_to_count_nothing_changes() {
    let (mut lab, mut ear) = begun(5);
    let latch = SharedCounter::latch(NAME).unwrap();
    let mut waits = Ear::at(&lab, "PUBLISH", latch.channel());
    let [taken, given, less, other] = [1, 2, 3, 4].map(|n| copy(&mut lab, n));
    assert_eq!(take(&mut lab, taken, 2), Ok(Some(2)));
    lab.raw(&["ACL", "SETUSER", "default", "-incrby"]);
    lab.assert_refused("NOPERM", |lab| take(lab, other, 1));
    for (copy, permits) in [(taken, Some(2)), (taken, None), (given, Some(1)), (less, Some(-1))] {
        lab.assert_refused("NOPERM", |lab| release(lab, copy, permits));
    }
    let down = latch.count_down(other);
    lab.assert_refused("NOPERM", |lab| run(lab, "shared_count_down", &down, |words| words.word()));
    lab.raw(&["ACL", "SETUSER", "default", "+incrby"]);
    assert_eq!((ear.heard(&mut lab), waits.heard(&mut lab)), (Vec::new(), Vec::new()));
    assert_eq!(release(&mut lab, taken, None), Ok(true));
    assert_eq!((look(&mut lab), ear.heard(&mut lab)), (Ok(5), vec!["5".to_owned()]));
}
