use std::collections::VecDeque;
use std::sync::atomic::AtomicUsize;
use std::task::{Context, Poll};

use super::*;
use crate::backoff::Pauses;
use crate::context::tests::{Setup, finish, poll, setup, unreachable};
use crate::error::Error;
use crate::runtime::still::Still;
use crate::wakers::woken::Woken;

const PAUSES: Pauses = Pauses { shortest: Duration::from_millis(10), longest: Duration::from_millis(10) };
const LIMIT: Duration = Duration::from_secs(3);

fn first() -> (Arc<FirstConnect>, Arc<Still>) {
    let Setup { executor, .. } = setup();
    (Arc::new(FirstConnect::new("h:1".to_owned(), executor.clone())), executor)
}

/// Connects after these failures.
fn make(first: &Arc<FirstConnect>, failures: &[ErrorKind]) -> impl Future<Output = Option<u8>> + use<> {
    let failures = Mutex::new(failures.iter().copied().collect::<VecDeque<_>>());
    let attempt = move || -> BoxFuture<'static, Result<u8>> {
        let failure = lock(&failures).pop_front();
        Box::pin(async move {
            match failure {
                Some(kind) => Err(Error::because(kind, "connect", "by the test")),
                None => Ok(7),
            }
        })
    };
    first.clone().make(Backoff::new(PAUSES, 0), attempt, |made| made)
}

fn denied() -> ConnectionError {
    ConnectionError::until_connected(&Error::because(ErrorKind::Denied, "connect", "wrong password"))
}

#[test]
fn who_waits_in_vain_is_told_where_it_leads_why_and_for_how_long() {
    let (first, _) = first();
    let told = |reason: &str, secs: u32| {
        let tried = Duration::from_secs(secs.into());
        Some(ConnectionError::Unreachable(format!("h:1: {reason} (connecting for {tried:?})")))
    };
    assert_eq!(finish(first.made_within(LIMIT)).err(), told("the first attempt to connect has not ended", 3));
    first.set_failed(unreachable());
    assert_eq!(finish(first.made_within(LIMIT)).err(), told("by the test", 6));
    assert_eq!(first.told(), told("by the test", 6));
    first.set_failed(ConnectionError::Unreachable("h:1: connection refused".to_owned()));
    let why = first.told().unwrap().to_string();
    assert_eq!(why.matches("h:1").count(), 1, "where it leads is told once: {why}");
}

#[test]
fn attempts_follow_each_other_until_one_succeeds() {
    let (first, _) = first();
    assert!(first.is_missing());
    let made = finish(make(&first, &[ErrorKind::Unavailable, ErrorKind::Denied, ErrorKind::Refused]));
    assert_eq!((made, first.missing(), first.told(), first.is_missing()), (Some(7), None, None, false));
    assert_eq!(finish(first.made_within(LIMIT)), Ok(()));
}

#[test]
fn what_time_does_not_mend_is_told_without_a_wait() {
    let (first, _) = first();
    let mut waits = pin!(first.made_within(LIMIT));
    assert!(poll(waits.as_mut()).is_pending());
    first.set_failed(denied());
    let Poll::Ready(Err(error)) = poll(waits.as_mut()) else { panic!("it waits") };
    assert!(poll(pin!(first.made_within(LIMIT)).as_mut()).is_ready(), "a second one does not wait at all");
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Denied, "not connected: wrong password".to_owned()));
    first.set_failed(unreachable());
    assert!(poll(pin!(first.made_within(LIMIT)).as_mut()).is_pending(), "an old failure is told");
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
fn closing_ends_the_attempts_and_all_waits() {
    let (first, executor) = first();
    let (mut making, mut waits) = (pin!(make(&first, &[ErrorKind::Unavailable; 1000])), pin!(first.made_within(LIMIT)));
    assert!(poll(making.as_mut()).is_pending() && poll(waits.as_mut()).is_pending());
    first.close();
    assert_eq!(finish(making), None);
    assert_eq!(finish(waits), Err(ConnectionError::Closed));
    assert_eq!(finish(make(&first, &[])), None, "an attempt that succeeds too late");
    let before = executor.now();
    assert_eq!(finish(first.made_within(LIMIT)), Err(ConnectionError::Closed));
    finish(first.attempted_within(LIMIT));
    assert_eq!((executor.now(), first.missing()), (before, Some(ConnectionError::Closed)), "without a wait");
}

#[test]
fn dropped_attempts_close_it_even_before_they_began() {
    for polls in [0, 1] {
        let (first, _) = first();
        let mut making = Box::pin(make(&first, &[ErrorKind::Unavailable]));
        (0..polls).for_each(|_| assert!(poll(making.as_mut()).is_pending()));
        drop(making);
        assert_eq!(first.missing(), Some(ConnectionError::Closed), "{polls}");
    }
    let (first, _) = first();
    assert_eq!((finish(make(&first, &[])), first.missing()), (Some(7), None), "the end of the attempts is no drop");
    first.close();
    assert_eq!(first.missing(), None, "from now on, what was made tells why nothing is executed");
}

#[test]
fn a_connection_that_is_closed_ends_the_attempts() {
    let (first, _) = first();
    let attempts = AtomicUsize::new(0);
    let attempt = || -> BoxFuture<'static, Result<u8>> {
        attempts.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Err(Error::new(ErrorKind::Closed, "connect")) })
    };
    let made = finish(first.clone().make(Backoff::new(PAUSES, 0), attempt, |made| made));
    assert_eq!((made, attempts.load(Ordering::SeqCst)), (None, 1));
    assert_eq!(first.missing(), Some(ConnectionError::Closed));
}

/// Without a wake, who waits hears of a denial only when its time is over. A sleep of this executor wakes its task
/// once, and ends at the second poll.
#[test]
fn every_change_wakes_all_who_wait() {
    let changes: [fn(&FirstConnect); 3] = [
        |first| first.set_failed(denied()),
        |first| assert_eq!(first.take_up(7, |made| made), Some(7)),
        FirstConnect::close,
    ];
    for (n, change) in changes.into_iter().enumerate() {
        let (first, _) = first();
        let woken = [(); 3].map(|()| Arc::new(Woken::default()));
        let wakers = woken.each_ref().map(Woken::waker);
        let mut waits: [BoxFuture<'_, ()>; 3] = [
            Box::pin(async { drop(first.made_within(LIMIT).await) }),
            Box::pin(first.attempted_within(LIMIT)),
            Box::pin(first.clone().ended()),
        ];
        for (wait, waker) in waits.iter_mut().zip(&wakers) {
            assert!(wait.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
        }
        let counts = || woken.each_ref().map(|woken| woken.count());
        let before = counts();
        change(&first);
        assert_eq!(counts(), before.map(|before| before + 1), "{n}");
        let ends = waits.each_mut().map(|wait| poll(wait.as_mut()).is_ready());
        assert_eq!(ends, [true, true, n > 0], "{n}");
    }
}
