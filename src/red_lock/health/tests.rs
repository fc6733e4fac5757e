use super::*;
use crate::context::tests::{Answer, poll};
use crate::mutex::lock;
use crate::red_lock::masters::tests::{SECOND, Three};

fn why(kind: ErrorKind) -> Why {
    (kind, "by the test".to_owned())
}

/// What an answer of this kind, to a request with this limit, says about the first master: whether it is about the
/// master, whether the master is still up, and whether it serves this name.
fn failed(kind: ErrorKind, limit: Duration) -> (bool, bool, bool) {
    let three = Three::durable();
    let (masters, keys, now) = (&three.masters, &three.votes[0], three.masters.now());
    let is_about_it = masters.set_failed(0, keys, why(kind), (now, limit));
    (is_about_it, masters.all[0].is_up(), masters.all[0].serves(keys, now))
}

#[test]
fn what_an_answer_says_about_its_master() {
    let node_timeout = SECOND / 2;
    assert_eq!(failed(ErrorKind::Unavailable, node_timeout), (true, false, false));
    assert_eq!(failed(ErrorKind::Unavailable, node_timeout / 2), (true, true, false), "there was little time");
    assert_eq!(failed(ErrorKind::Refused, node_timeout / 2), (true, false, false));
    for kind in
        [ErrorKind::Denied, ErrorKind::Certificate, ErrorKind::WrongType, ErrorKind::Unsupported, ErrorKind::Protocol]
    {
        assert_eq!(failed(kind, node_timeout), (true, true, false), "{kind:?}");
    }
    for kind in [ErrorKind::Closed, ErrorKind::InvalidInput] {
        assert_eq!(failed(kind, node_timeout), (false, true, true), "{kind:?}");
    }
}

#[test]
fn a_refusal_is_told_and_a_silence_is_not() {
    let three = Three::durable();
    let (masters, keys, now) = (&three.masters, &three.votes, three.masters.now());
    masters.set_failed(0, &keys[0], why(ErrorKind::Refused), (now, SECOND));
    assert_eq!(masters.all[0].refusal(&keys[0], now), Some(why(ErrorKind::Refused)));
    masters.set_silent(1, &keys[1], Some(why(ErrorKind::Unavailable)), (now, SECOND / 4));
    assert_eq!((masters.all[1].refusal(&keys[1], now), masters.all[1].serves(&keys[1], now)), (None, false));
}

/// The task of a check is there until it ends, in whatever way.
#[test]
fn one_check_of_a_master_is_under_way() {
    let three = Three::durable();
    let setup = &three.setups[0];
    setup.executor.take_tasks();
    let began = || {
        three.masters.check(0, None);
        setup.executor.take_tasks()
    };
    let mut first = began();
    assert_eq!(first.len(), 1);
    assert_eq!(began().len(), 0, "it is under way");
    lock(&setup.connection.answers).push_back(Answer::Never);
    assert!(poll(first[0].as_mut()).is_pending());
    drop(first);
    let never_polled = began();
    assert_eq!(never_polled.len(), 1, "the runtime has dropped the first one");
    drop(never_polled);
    assert_eq!(began().len(), 1, "and the second one, before its first poll");
}

/// Until then it was no part of a majority.
#[test]
fn a_master_that_counted_is_missed_from_when_it_is_down() {
    let three = Three::new(10 * SECOND, false);
    let (masters, keys) = (&three.masters, &three.votes[0]);
    let from = three.answers(0, "a", SECOND).unwrap();
    masters.all[0].unable_since(keys, false, masters.now());
    masters.set_down(0, None, from);
    assert_eq!(masters.all[0].unable_since(keys, true, from), Some(from));
    let three = Three::new(10 * SECOND, false);
    let (masters, keys, began) = (&three.masters, &three.votes[0], three.masters.now());
    let from = three.answers(0, "a", SECOND).unwrap();
    masters.all[0].unable_since(keys, false, began);
    masters.set_down(0, None, from - SECOND);
    assert_eq!(masters.all[0].unable_since(keys, true, from), Some(began));
}
