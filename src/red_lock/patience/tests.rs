use std::time::Duration;

use super::*;
use crate::context::tests::{finish, poll};
use crate::red_lock::masters::tests::{SECOND, Three};

/// A retry timeout after it, in seconds since the acquisition began.
fn ends(three: &Three, patience: &Patience) -> Option<f64> {
    patience.end(&three.masters, &three.votes).map(|end| (end - patience.began).as_secs_f64())
}

fn lose_two(three: &Three) {
    [1, 2].into_iter().for_each(|n| three.masters.set_down(n, None, three.masters.now()));
}

#[test]
fn an_acquisition_that_asks_has_the_retry_timeout_to_get_on() {
    let three = Three::durable();
    let patience = Patience::new(&three.masters);
    assert_eq!(ends(&three, &patience), Some(10.0));
    three.advance(4 * SECOND);
    assert_eq!(patience.ask(three.masters.now()), patience.began, "it has asked before");
    assert_eq!(ends(&three, &patience), Some(10.0));
    lose_two(&three);
    assert_eq!(ends(&three, &patience), Some(10.0));
    patience.wait_for_votes(three.masters.now());
    three.advance(SECOND);
    assert_eq!(patience.ask(three.masters.now()), three.masters.now(), "a majority has answered");
    assert_eq!(ends(&three, &patience), Some(14.0), "there has been no majority since before");
}

#[test]
fn an_acquisition_that_waits_fails_only_without_a_majority() {
    let three = Three::durable();
    let patience = Patience::new(&three.masters);
    three.advance(2 * SECOND);
    patience.wait(three.masters.now());
    assert_eq!(ends(&three, &patience), None);
    three.advance(40 * SECOND);
    patience.wait(three.masters.now());
    assert_eq!(ends(&three, &patience), None);
    lose_two(&three);
    assert_eq!(ends(&three, &patience), Some(52.0), "the majority has gone after the wait began");
}

#[test]
fn a_wait_that_begins_without_a_majority_is_no_progress() {
    let three = Three::durable();
    let patience = Patience::new(&three.masters);
    three.advance(3 * SECOND);
    lose_two(&three);
    three.advance(2 * SECOND);
    patience.wait(three.masters.now());
    assert_eq!(ends(&three, &patience), Some(10.0), "it has not got on since it began");
}

/// All of them wait for the same majority.
#[test]
fn acquisitions_that_begin_without_a_majority_fail_a_retry_timeout_later() {
    let three = Three::durable();
    lose_two(&three);
    three.advance(3 * SECOND);
    let patience = Patience::new(&three.masters);
    patience.wait(three.masters.now());
    assert_eq!(ends(&three, &patience), Some(10.0));
    three.advance(SECOND);
    patience.wait_for_votes(three.masters.now());
    assert_eq!(ends(&three, &patience), Some(10.0));
}

#[test]
fn without_retries_each_request_has_its_time() {
    let three = Three::new(Duration::ZERO, true);
    let patience = Patience::new(&three.masters);
    assert_eq!(ends(&three, &patience), Some(3.0), "the command timeout");
    let error = patience.check(&three.masters, &three.request).unwrap_err();
    assert_eq!((error.kind(), error.name()), (ErrorKind::Unavailable, Some("n")));
    let three = Three::durable();
    assert!(patience.check(&three.masters, &three.request).is_ok());
}

#[test]
fn the_time_is_over_when_it_has_passed() {
    let three = Three::durable();
    let patience = Patience::new(&three.masters);
    // The sleep of this clock goes on at once.
    finish(patience.over(&three.masters, &three.votes));
    assert_eq!(three.masters.now() - patience.began, 10 * SECOND);
}

/// It looks again after each notice, whether of the masters or of the acquisition itself.
#[test]
fn a_wait_is_not_over_before_the_majority_has_gone() {
    let three = Three::durable();
    let patience = Patience::new(&three.masters);
    patience.wait(three.masters.now());
    let mut over = Box::pin(patience.over(&three.masters, &three.votes));
    for _ in 0..5 {
        assert!(poll(over.as_mut()).is_pending());
        three.masters.changed.notify(usize::MAX);
    }
    three.advance(10 * SECOND);
    assert!(poll(over.as_mut()).is_pending());
    patience.ask(three.masters.now() - 10 * SECOND);
    assert!(poll(over.as_mut()).is_ready());
}

#[test]
fn each_master_is_counted_once_for_what_it_has_to_do_with_it() {
    let three = Three::new(10 * SECOND, false);
    let reason = || reason(&three.masters, "n");
    assert_eq!(reason(), "of 3 masters, 0 do not answer and 0 have restarted too short a time ago");
    three.answers(2, "a", SECOND);
    three.masters.set_down(1, None, three.masters.now());
    assert_eq!(reason(), "of 3 masters, 1 do not answer and 1 have restarted too short a time ago");
    three.denies(0, SECOND);
    let refused = "of 3 masters, 1 do not answer, 1 refuse and 1 have restarted too short a time ago; master 1: NOPERM";
    assert_eq!(reason(), refused);
    three.denies(2, SECOND);
    assert!(reason().starts_with("of 3 masters, 1 do not answer, 2 refuse and 0 have"), "{}", reason());
    three.advance(SECOND);
    assert_eq!(reason(), "of 3 masters, 1 do not answer and 1 have restarted too short a time ago");
    let from = three.masters.counts_from(2).unwrap();
    three.advance(from - three.masters.now());
    assert_eq!(reason(), "of 3 masters, 1 do not answer and 0 have restarted too short a time ago");
}

/// A master that is too slow for this name has not said why.
#[test]
fn a_master_that_is_silent_about_the_name_does_not_answer() {
    let three = Three::durable();
    let turns = three.masters.keys(Kind::Turn, "n").unwrap();
    let now = three.masters.now();
    three.masters.all[0].add_doubt(&turns[0], None, (now, now, now + SECOND));
    assert!(reason(&three.masters, "n").starts_with("of 3 masters, 1 do not answer and 0"));
    assert!(reason(&three.masters, "other").starts_with("of 3 masters, 0 do not answer and 0"));
}

#[test]
fn a_master_that_is_down_with_an_answer_refuses() {
    let three = Three::durable();
    let why = Some((ErrorKind::Unavailable, "LOADING".to_owned()));
    three.masters.set_down(1, why, three.masters.now());
    let refuses =
        "of 3 masters, 0 do not answer, 1 refuse and 0 have restarted too short a time ago; master 2: LOADING";
    assert_eq!(reason(&three.masters, "n"), refuses);
}
