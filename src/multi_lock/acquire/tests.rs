use std::time::Duration;

use super::*;
use crate::acquire::builder::choices::Part;
use crate::context::tests::{Answer, LEASE, Setup, finish, poll, setup};
use crate::handle::Primitive;
use crate::hold::owner::HoldSource;
use crate::mutex::lock;
use crate::protocol::kind::Kind;

fn options(setup: &Setup) -> Options {
    let source = HoldSource::new(setup.context.clone());
    let part = |name| {
        let primitive = Primitive::new(&source, Kind::Lock, name);
        Part { primitive, amount: 1 }
    };
    Options::of_several(&["b", "c", "a"].map(part), "acquire")
}

fn answer(setup: &Setup, answers: impl IntoIterator<Item = Answer>) {
    lock(&setup.connection.answers).extend(answers);
}

/// The names of the background clean-ups, in their order.
fn cleaned_up(setup: &Setup) -> Vec<String> {
    let work = setup.context.engine.work(setup.context.now());
    work.cleanups.into_iter().map(|(_, cleanup)| cleanup.keys.name.to_string()).collect()
}

#[test]
fn holds_end_in_the_reverse_order() {
    let setup = setup();
    answer(&setup, [Answer::Granted, Answer::Granted, Answer::Granted]);
    let holds = finish(acquire_all(&options(&setup), true)).unwrap().unwrap();
    assert_eq!(holds.iter().map(|owned| &*owned.hold.keys.name).collect::<Vec<_>>(), ["a", "b", "c"]);
    // A second guard keeps all of the holds.
    let shared = holds.beside();
    drop(holds);
    assert!(cleaned_up(&setup).is_empty());
    drop(shared);
    assert_eq!(cleaned_up(&setup), ["c", "b", "a"]);
}

#[test]
fn a_dropped_wait_is_cancelled_before_what_is_held() {
    let setup = setup();
    answer(&setup, [Answer::Granted, Answer::Granted, Answer::Queued]);
    let options = options(&setup);
    let mut waiting = Box::pin(acquire_all(&options, true));
    for _ in 0..20 {
        assert!(poll(waiting.as_mut()).is_pending());
    }
    assert!(cleaned_up(&setup).is_empty());
    drop(waiting);
    assert_eq!(cleaned_up(&setup), ["c", "b", "a"]);
}

/// The releases are sent at once, and the server executes them in the order in which they were sent.
#[test]
fn releases_are_sent_in_the_reverse_order() {
    let setup = setup();
    answer(&setup, [Answer::Granted, Answer::Granted, Answer::Granted]);
    let holds = finish(acquire_all(&options(&setup), true)).unwrap().unwrap();
    lock(&setup.connection.keys).clear();
    answer(&setup, [Answer::Never, Answer::Never, Answer::Never]);
    let mut release = Box::pin(holds.release());
    assert!(poll(release.as_mut()).is_pending());
    assert_eq!(*lock(&setup.connection.keys), ["bowline:lock:{c}", "bowline:lock:{b}", "bowline:lock:{a}"]);
}

/// The watchdog has not looked at the clock since the hold expired.
#[test]
fn a_hold_that_expired_before_the_last_answer_is_no_part_of_a_guard() {
    let setup = setup();
    let second = Duration::from_secs(1);
    answer(&setup, [Answer::Granted, Answer::After(second), Answer::After(LEASE - second / 2)]);
    let error = finish(acquire_all(&options(&setup), true)).unwrap_err();
    assert_eq!((error.kind(), error.name()), (ErrorKind::Lost, Some("a")));
}

/// The server that has answered "busy" is gone when the holds before it are given back.
#[test]
fn a_try_takes_no_longer_than_one_retry_timeout() {
    let setup = setup();
    let began = setup.context.now();
    let retry_timeout = setup.context.config.retry_timeout;
    answer(&setup, [Answer::Granted, Answer::After(retry_timeout / 2), Answer::Busy]);
    assert!(finish(acquire_all(&options(&setup), false)).unwrap().is_none());
    // This clock goes on with each sleep that begins, also with that of a pause that is cut off.
    let took = setup.context.now() - began;
    assert!((retry_timeout..retry_timeout * 5 / 4).contains(&took), "{took:?}");
    let mut left = cleaned_up(&setup);
    left.sort();
    assert_eq!(left, ["a", "b"], "the background goes on");
}

/// Nothing is asked for that no time is left for.
#[test]
fn a_timeout_that_the_first_holds_have_used_up_sends_nothing_more() {
    let setup = setup();
    let second = Duration::from_secs(1);
    let mut options = options(&setup);
    options.choices.timeout = Some(second);
    answer(&setup, [Answer::After(second), Answer::Granted, Answer::Granted]);
    let error = finish(acquire_all(&options, true)).unwrap_err();
    assert_eq!((error.kind(), error.name()), (ErrorKind::TimedOut, Some("b")));
    assert_eq!(*lock(&setup.connection.keys), ["bowline:lock:{a}"]);
    assert_eq!(cleaned_up(&setup), ["a"]);
}

/// Without retries, a request has the command timeout all the same.
#[test]
fn a_try_without_a_retry_timeout_waits_for_what_it_gives_back() {
    let mut setup = setup();
    Arc::get_mut(&mut setup.context).unwrap().config.retry_timeout = Duration::ZERO;
    answer(&setup, [Answer::Granted, Answer::Busy, Answer::Never]);
    let options = options(&setup);
    let mut trying = Box::pin(acquire_all(&options, false));
    for _ in 0..20 {
        assert!(poll(trying.as_mut()).is_pending());
    }
    assert_eq!(lock(&setup.connection.keys).last().unwrap(), "bowline:lock:{a}", "the release is under way");
}

/// The wait itself belongs to a client that is still open.
#[test]
fn a_client_that_is_closed_during_the_wait_for_another_one_says_so() {
    let (first, second) = (setup(), setup());
    answer(&first, [Answer::Granted]);
    answer(&second, [Answer::Queued]);
    let part = |setup: &Setup, name| {
        let primitive = Primitive::new(&HoldSource::new(setup.context.clone()), Kind::Lock, name);
        Part { primitive, amount: 1 }
    };
    let options = Options::of_several(&[part(&first, "a"), part(&second, "b")], "acquire");
    let mut waiting = Box::pin(acquire_all(&options, true));
    for _ in 0..20 {
        assert!(poll(waiting.as_mut()).is_pending());
    }
    first.context.engine.close(first.context.now());
    let error = finish(waiting).unwrap_err();
    assert_eq!((error.kind(), error.name()), (ErrorKind::Closed, Some("a")));
}
