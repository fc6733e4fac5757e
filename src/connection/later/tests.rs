use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task;

use super::*;
use crate::backoff::Pauses;
use crate::context::tests::{Played, Setup, finish, poll, setup, unreachable};
use crate::error::Error;
use crate::protocol::script;
use crate::wakers::woken::Woken;

const PAUSES: Pauses = Pauses { shortest: Duration::from_millis(10), longest: Duration::from_millis(10) };

struct Scene {
    later: Arc<Later>,
    played: Arc<Played>,
}

fn scene() -> Scene {
    let Setup { executor, connection, .. } = setup();
    Scene { later: Arc::new(Later::to("h:1".to_owned(), executor, Duration::from_secs(3))), played: connection }
}

fn call() -> Call<'static> {
    Call::new(script::Script::all().next().unwrap(), &[], &[])
}

fn calls(played: &Played) -> usize {
    *lock(&played.calls)
}

impl Scene {
    /// Makes the connection after these failures.
    fn make(&self, failures: &[ErrorKind]) -> impl Future<Output = Option<u8>> + use<> {
        let failures = Mutex::new(failures.iter().copied().collect::<VecDeque<_>>());
        let played = self.played.clone();
        self.later.clone().make(Backoff::new(PAUSES, 0), move || {
            let (failure, played) = (lock(&failures).pop_front(), played.clone());
            Box::pin(async move {
                match failure {
                    Some(kind) => Err(Error::because(kind, "connect", "by the test")),
                    None => Ok((played as Arc<dyn Connection>, 7)),
                }
            })
        })
    }
}

#[test]
fn a_call_that_waited_for_the_connection_is_not_executed() {
    let scene = scene();
    let mut waits = pin!(scene.later.run(call()));
    assert!(poll(waits.as_mut()).is_pending());
    assert!(scene.later.take_up(scene.played.clone()));
    let error = finish(waits).unwrap_err();
    assert_eq!((error.kind(), calls(&scene.played)), (ErrorKind::Unavailable, 0), "{error}");
    assert_eq!(finish(scene.later.run(call())), Err(unreachable()));
    assert_eq!(calls(&scene.played), 1, "a later one is");
}

#[test]
fn a_call_fails_with_the_last_failure_when_its_time_is_over() {
    let Scene { later, .. } = scene();
    // Where it leads, why there is no connection, and for how long.
    let told = |reason: &str, secs: u32| {
        Some(ConnectionError::Unreachable(format!(
            "h:1: {reason} (connecting for {:?})",
            Duration::from_secs(secs.into())
        )))
    };
    assert_eq!(finish(later.run(call())).err(), told("the first attempt to connect has not ended", 3));
    later.set_failed(unreachable());
    assert_eq!(finish(later.run(call())).err(), told("by the test", 6));
    let one = Duration::from_secs(1);
    let batch = [call(), call().within(one)];
    assert_eq!(finish(later.run_batch(&batch)).pop().unwrap().err(), told("by the test", 7), "as long as its calls");
    assert_eq!(finish(later.run_acknowledged(&[call()], 1, one)).pop().unwrap().err(), told("by the test", 8));
    assert_eq!(later.why_down("a"), told("by the test", 8));
    assert_eq!(finish(later.subscribe("inbox")).err(), Some(unreachable()));
}

/// The connection below may be made in the background as well.
#[test]
fn the_connection_below_knows_more() {
    let Scene { later: below, played } = scene();
    let Setup { executor, .. } = setup();
    let later = Later::over(&(below.clone() as Arc<dyn Connection>), executor, Duration::from_secs(3));
    assert_eq!(later.why_down("a"), below.why_down("a"));
    assert!(later.why_down("a").unwrap().to_string().contains("h:1: "));
    later.close();
    assert_eq!(later.why_down("a"), Some(ConnectionError::Closed), "but not that this one was closed");
    let later = Later::over(&(below.clone() as Arc<dyn Connection>), setup().executor, Duration::from_secs(3));
    assert!(below.take_up(played));
    later.set_failed(unreachable());
    assert!(later.why_down("a").unwrap().to_string().contains("by the test"));
}

#[test]
fn attempts_follow_each_other_until_one_succeeds() {
    let scene = scene();
    let made = finish(scene.make(&[ErrorKind::Unavailable, ErrorKind::Denied, ErrorKind::Refused]));
    assert_eq!((made, scene.later.missing()), (Some(7), None));
    assert!(finish(scene.later.subscribe("inbox")).is_ok());
}

#[test]
fn what_time_does_not_mend_is_told_without_a_wait() {
    let Scene { later, .. } = scene();
    let mut waits = pin!(later.run(call()));
    assert!(poll(waits.as_mut()).is_pending());
    let denied = Error::because(ErrorKind::Denied, "connect", "wrong password");
    later.set_failed(ConnectionError::until_connected(&denied));
    let task::Poll::Ready(Err(error)) = poll(waits.as_mut()) else { panic!("it waits") };
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Denied, "not connected: wrong password".to_owned()));
    later.set_failed(unreachable());
    assert!(poll(pin!(later.run(call())).as_mut()).is_pending(), "an old failure is told");
}

#[test]
fn a_reason_from_below_is_told_once() {
    let below = ConnectionError::NotConnected { kind: ErrorKind::Certificate, reason: "expired".to_owned() };
    let error = Error::new(ErrorKind::Certificate, "connect").with_source(below.clone());
    assert_eq!(ConnectionError::until_connected(&error), below);
    let lost = Error::new(ErrorKind::Unavailable, "connect").with_source(ConnectionError::Unknown("lost".to_owned()));
    let unreachable = ConnectionError::Unreachable("no answer: lost".to_owned());
    assert_eq!(ConnectionError::until_connected(&lost), unreachable, "the call of the client was not executed");
}

#[test]
fn closing_ends_the_attempts_and_all_calls() {
    let scene = scene();
    let (mut making, mut waits) = (pin!(scene.make(&[ErrorKind::Unavailable; 1000])), pin!(scene.later.run(call())));
    assert!(poll(making.as_mut()).is_pending() && poll(waits.as_mut()).is_pending());
    scene.later.close();
    assert_eq!(finish(making), None);
    assert_eq!(finish(waits), Err(ConnectionError::Closed));
    assert_eq!(finish(scene.later.subscribe("inbox")).err(), Some(ConnectionError::Closed));
    assert!(!scene.later.take_up(scene.played.clone()), "an attempt that succeeds too late");
    assert_eq!(finish(scene.later.run(call())), Err(ConnectionError::Closed));
    assert_eq!(calls(&scene.played), 0);
}

#[test]
fn dropped_attempts_close_it_even_before_they_began() {
    for polls in [0, 1] {
        let scene = scene();
        let mut making = Box::pin(scene.make(&[ErrorKind::Unavailable]));
        (0..polls).for_each(|_| assert!(poll(making.as_mut()).is_pending()));
        drop(making);
        assert_eq!(finish(scene.later.run(call())), Err(ConnectionError::Closed), "{polls}");
    }
    let scene = scene();
    let made = finish(scene.make(&[]));
    assert_eq!((made, scene.later.missing()), (Some(7), None), "the end of the attempts is no drop");
}

#[test]
fn a_connection_below_that_is_closed_ends_the_attempts() {
    let scene = scene();
    let attempts = AtomicUsize::new(0);
    let made: Option<u8> = finish(scene.later.clone().make(Backoff::new(PAUSES, 0), || {
        attempts.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Err(Error::new(ErrorKind::Closed, "connect")) })
    }));
    assert_eq!((made, attempts.load(Ordering::SeqCst)), (None, 1));
    assert_eq!(scene.later.missing(), Some(ConnectionError::Closed));
}

/// Without a wake, a call hears of a denial only when its time is over.
#[test]
fn an_attempt_that_fails_wakes_those_who_wait() {
    let Scene { later, .. } = scene();
    let (call_woken, subscription_woken) = (Arc::new(Woken::default()), Arc::new(Woken::default()));
    let (mut calls, mut subscribes) = (pin!(later.run(call())), pin!(later.subscribe("inbox")));
    let wakers = [&call_woken, &subscription_woken].map(|woken| woken.waker());
    // A sleep of this executor wakes its task once, and ends at the second poll.
    assert!(calls.as_mut().poll(&mut task::Context::from_waker(&wakers[0])).is_pending());
    assert!(subscribes.as_mut().poll(&mut task::Context::from_waker(&wakers[1])).is_pending());
    let woken = || [&call_woken, &subscription_woken].map(|woken| woken.count());
    let before = woken();
    later.set_failed(ConnectionError::until_connected(&Error::because(ErrorKind::Denied, "connect", "wrong password")));
    assert_eq!(woken(), before.map(|before| before + 1));
}
