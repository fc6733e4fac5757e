//! The scripts of latches in Redisson's format: every reply, second and late copies, what is published, refusals.

use bowline::wire::{Copy, Request, SharedCounter, client};

use crate::cluster::node;
use crate::lab::{Around, Lab, Words};
use crate::redisson::{Ear, run};
use crate::refusals::Refusal;

const NAME: &str = "java:n";

fn latch() -> SharedCounter {
    SharedCounter::latch(NAME).unwrap()
}

fn lab() -> Lab {
    on(Lab::new())
}

fn on(mut lab: Lab) -> Lab {
    lab.keys = vec![NAME.to_owned()];
    lab
}

/// The first copy of the n-th call, which may arrive within a minute.
fn copy(lab: &mut Lab, n: u64) -> Copy {
    let end = lab.now() + 60_000;
    Copy { client: client(1), n, not_after: end, known_until: end, resent: false }
}

fn word(words: &mut Words) -> String {
    words.word()
}

fn count_of(words: &mut Words) -> (String, u64) {
    let word = words.word();
    let count = if word == "COUNT" { words.next() } else { 0 };
    (word, count)
}

#[track_caller]
fn set(lab: &mut Lab, copy: Copy, count: u32) -> String {
    run(lab, "shared_set", &latch().set(copy, count), word).unwrap()
}

#[track_caller]
fn count_down(lab: &mut Lab, copy: Copy) -> u64 {
    let (word, count) = run(lab, "shared_count_down", &latch().count_down(copy), count_of).unwrap();
    assert_eq!(word, "COUNT");
    count
}

fn look(lab: &mut Lab) -> Result<u64, String> {
    let sent = latch().count();
    let keys: Vec<String> = sent.keys().into_iter().map(str::to_owned).collect();
    lab.run("shared_count", &keys, &sent.words(), true, |words| words.next())
}

/// The keys but the marks.
fn keys(lab: &Lab) -> Vec<String> {
    let mut keys = lab.server.keys();
    keys.retain(|key| !key.contains(":call:{"));
    keys
}

fn ear(lab: &Lab) -> Ear {
    Ear::at(lab, "PUBLISH", latch().channel())
}

#[test]
fn counts_down_to_zero_and_is_gone() {
    let mut lab = lab();
    let mut ear = ear(&lab);
    assert_eq!(look(&mut lab), Ok(0));
    let first = copy(&mut lab, 1);
    assert_eq!(set(&mut lab, first, 3), "SET");
    assert_eq!(lab.raw(&["GET", NAME]), lab.raw(&["ECHO", "3"]), "as Redisson stores it");
    assert_eq!(ear.heard(&mut lab), ["1"]);
    let second = copy(&mut lab, 2);
    assert_eq!(set(&mut lab, second, 5), "EXISTS");
    for (n, left) in [(3, 2), (4, 1), (5, 0), (6, 0), (7, 0)] {
        let down = copy(&mut lab, n);
        assert_eq!(count_down(&mut lab, down), left);
        assert_eq!(look(&mut lab), Ok(left));
    }
    assert_eq!(ear.heard(&mut lab), ["0"], "once, at zero");
    assert_eq!(keys(&lab), Vec::<String>::new());
    let again = copy(&mut lab, 8);
    assert_eq!(set(&mut lab, again, 1), "SET");
    assert_eq!(ear.heard(&mut lab), ["1"]);
}

/// A second copy is answered like the first, whatever has happened since, and changes nothing.
#[test]
fn a_second_copy_is_answered_like_the_first() {
    let mut lab = lab();
    let mut ear = ear(&lab);
    let [first, refused, down, last] = [1, 2, 3, 4].map(|n| copy(&mut lab, n));
    lab.twice(0, |lab| assert_eq!(set(lab, first, 2), "SET"));
    let refused = Copy { resent: true, ..refused };
    lab.twice(0, |lab| assert_eq!(set(lab, refused, 7), "EXISTS"));
    lab.twice(0, |lab| assert_eq!(count_down(lab, down), 1));
    lab.twice(0, |lab| assert_eq!(count_down(lab, last), 0));
    assert_eq!(ear.heard(&mut lab), ["1", "0"]);
    // A latch that is set later is not counted down, and not set.
    assert_eq!(set(&mut lab, refused, 7), "EXISTS");
    assert_eq!(keys(&lab), Vec::<String>::new(), "it was refused");
    let next = copy(&mut lab, 5);
    assert_eq!(set(&mut lab, next, 4), "SET");
    assert_eq!((count_down(&mut lab, down), count_down(&mut lab, last)), (1, 0));
    assert_eq!(set(&mut lab, first, 2), "SET");
    assert_eq!(look(&mut lab), Ok(4));
    assert_eq!(ear.heard(&mut lab), ["1"]);
    // A copy that found nothing to count is remembered if the first one may still come.
    let mut lab = on(Lab::new());
    let nothing = Copy { resent: true, ..copy(&mut lab, 6) };
    assert_eq!(count_down(&mut lab, nothing), 0);
    let next = copy(&mut lab, 7);
    assert_eq!(set(&mut lab, next, 4), "SET");
    assert_eq!(count_down(&mut lab, Copy { resent: false, ..nothing }), 0);
    assert_eq!(look(&mut lab), Ok(4));
}

#[test]
fn what_changes_nothing_leaves_nothing() {
    let mut lab = lab();
    let down = copy(&mut lab, 1);
    assert_eq!(count_down(&mut lab, down), 0);
    assert_eq!(lab.server.keys(), Vec::<String>::new());
}

#[test]
fn a_mark_lives_as_long_as_copies_may_come() {
    let mut lab = lab();
    let first = copy(&mut lab, 1);
    assert_eq!(set(&mut lab, first, 2), "SET");
    let left: i64 = redis::cmd("PTTL").arg(latch().mark(first)).query(&mut lab.server.client()).unwrap();
    assert!((50_000..=60_001).contains(&left), "{left}");
}

#[test]
fn a_copy_that_comes_too_late_does_nothing() {
    let mut lab = lab();
    let late = Copy { not_after: 1, ..copy(&mut lab, 1) };
    assert_eq!(set(&mut lab, late, 2), "STALE");
    assert_eq!(lab.server.keys(), Vec::<String>::new());
    let first = copy(&mut lab, 2);
    assert_eq!(set(&mut lab, first, 2), "SET");
    let late = latch().count_down(Copy { not_after: 1, ..copy(&mut lab, 3) });
    assert_eq!(run(&mut lab, "shared_count_down", &late, count_of), Ok(("STALE".to_owned(), 0)));
    assert_eq!(look(&mut lab), Ok(2));
    // One that was executed before is answered, however late it is.
    assert_eq!(set(&mut lab, Copy { not_after: 1, ..first }, 2), "SET");
}

/// Java may set a latch to zero, or below by hand. It is open, and the next call ends it.
#[test]
fn a_stored_zero_is_open() {
    for stored in ["0", "-3"] {
        let mut lab = lab();
        let mut ear = ear(&lab);
        lab.raw(&["SET", NAME, stored]);
        assert_eq!(look(&mut lab), Ok(0));
        let refused = copy(&mut lab, 1);
        assert_eq!(set(&mut lab, refused, 1), "EXISTS", "as Redisson does");
        let down = copy(&mut lab, 2);
        assert_eq!(count_down(&mut lab, down), 0);
        assert_eq!((keys(&lab), ear.heard(&mut lab)), (Vec::new(), vec!["0".to_owned()]));
    }
}

#[test]
fn a_time_to_live_of_java_stays() {
    let mut lab = lab();
    lab.raw(&["SET", NAME, "3", "PX", "60000"]);
    let down = copy(&mut lab, 1);
    assert_eq!(count_down(&mut lab, down), 2);
    assert!(lab.ttl(0) > 30_000);
}

#[test]
fn messages_go_to_shard_channels_or_both_ways() {
    let server = node();
    if !server.has_shard_channels() {
        return;
    }
    let mut lab = on(Lab::on(server));
    let channel = latch().channel().to_owned();
    let (mut sharded, mut other) = (Ear::at(&lab, "SPUBLISH", &channel), Ear::at(&lab, "PUBLISH", &channel));
    let [first, down] = [1, 2].map(|n| copy(&mut lab, n));
    let sent = latch().sharded(true).set(first, 1);
    assert_eq!(run(&mut lab, "shared_set", &sent, word), Ok("SET".to_owned()));
    assert_eq!((sharded.heard(&mut lab), other.heard(&mut lab)), (vec!["1".to_owned()], Vec::new()));
    let sent = latch().counts_everyone(false).count_down(down);
    assert_eq!(run(&mut lab, "shared_count_down", &sent, count_of), Ok(("COUNT".to_owned(), 0)));
    assert_eq!((sharded.heard(&mut lab), other.heard(&mut lab)), (vec!["0".to_owned()], vec!["0".to_owned()]));
}

/// The calls that change the latch.
fn changes(lab: &mut Lab, n: u64) -> [(&'static str, Request); 2] {
    [("shared_set", latch().set(copy(lab, n), 2)), ("shared_count_down", latch().count_down(copy(lab, n + 1)))]
}

#[test]
fn a_key_that_is_no_count_is_an_error_and_stays() {
    let mut lab = lab();
    lab.set_wrong(NAME);
    for (script, sent) in changes(&mut lab, 1) {
        lab.assert_refused("WRONGTYPE", |lab| run(lab, script, &sent, word));
    }
    assert_eq!(look(&mut lab), Err("WRONGTYPE".to_owned()));
    for text in ["x", "", "1.5", "1e3"] {
        let mut lab = on(Lab::new());
        lab.raw(&["SET", NAME, text]);
        for (script, sent) in changes(&mut lab, 1) {
            lab.assert_refused("WRONGTYPE", |lab| run(lab, script, &sent, word));
        }
        assert_eq!(look(&mut lab), Err("WRONGTYPE".to_owned()));
    }
}

#[test]
fn a_server_that_takes_no_writes_says_nothing() {
    for refusal in Refusal::ALL {
        let mut lab = on(Lab::on(Refusal::server()));
        if !refusal.applies(&lab) {
            continue;
        }
        let first = copy(&mut lab, 1);
        assert_eq!(set(&mut lab, first, 2), "SET");
        let gone = SharedCounter::latch("java:gone").unwrap();
        refusal.begin(&mut lab);
        let sent = [
            ("shared_set", gone.set(copy(&mut lab, 2), 2)),
            ("shared_count_down", gone.count_down(copy(&mut lab, 3))),
            ("shared_count_down", latch().count_down(copy(&mut lab, 4))),
            // A second copy, too.
            ("shared_set", latch().set(first, 2)),
        ];
        for (script, sent) in sent {
            assert_eq!(run(&mut lab, script, &sent, word), Err(refusal.code()));
        }
        // What it does not have may be at its master.
        let sent = gone.count();
        let keys: Vec<String> = sent.keys().into_iter().map(str::to_owned).collect();
        assert_eq!(lab.run("shared_count", &keys, &sent.words(), true, word), Err(refusal.code()));
        refusal.end(&mut lab);
        assert_eq!(look(&mut lab), Ok(2));
    }
}

/// Nothing is changed without the message.
#[test]
fn without_the_right_to_publish_nothing_changes() {
    let mut lab = lab();
    let first = copy(&mut lab, 1);
    assert_eq!(set(&mut lab, first, 1), "SET");
    let down = latch().count_down(copy(&mut lab, 2));
    lab.raw(&["ACL", "SETUSER", "default", "resetchannels"]);
    lab.assert_refused("NOPERM", |lab| run(lab, "shared_count_down", &down, count_of));
    lab.raw(&["ACL", "SETUSER", "default", "allchannels"]);
    assert_eq!(run(&mut lab, "shared_count_down", &down, count_of), Ok(("COUNT".to_owned(), 0)));
}

/// Those who wait would find the latch as it was.
#[test]
fn without_the_right_to_end_it_nobody_is_told_that_it_is_open() {
    let mut lab = lab();
    let mut ear = ear(&lab);
    let first = copy(&mut lab, 1);
    assert_eq!(set(&mut lab, first, 1), "SET");
    let down = latch().count_down(copy(&mut lab, 2));
    lab.raw(&["ACL", "SETUSER", "default", "-del"]);
    lab.assert_refused("NOPERM", |lab| run(lab, "shared_count_down", &down, count_of));
    lab.raw(&["ACL", "SETUSER", "default", "+del"]);
    assert_eq!((look(&mut lab), ear.heard(&mut lab)), (Ok(1), vec!["1".to_owned()]));
    assert_eq!(run(&mut lab, "shared_count_down", &down, count_of), Ok(("COUNT".to_owned(), 0)));
    assert_eq!(ear.heard(&mut lab), ["0"]);
}
