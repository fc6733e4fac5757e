use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task;

use async_trait::async_trait;
use futures::stream::BoxStream;

use super::*;
use crate::backoff::Pauses;
use crate::connection::{Notice, Reply, Topology};
use crate::context::tests::{Played, Setup, finish, poll, setup, unreachable};
use crate::error::Error;
use crate::protocol::script;
use crate::runtime::still::Still;
use crate::wakers::woken::Woken;

const PAUSES: Pauses = Pauses { shortest: Duration::from_millis(10), longest: Duration::from_millis(10) };

struct Scene {
    executor: Arc<Still>,
    later: Arc<Later>,
    played: Arc<Played>,
    made: Arc<Made>,
}

/// The connection that is made.
#[derive(Debug)]
struct Made {
    inner: Arc<Played>,
    is_closed: AtomicBool,
}

#[async_trait]
impl Connection for Made {
    fn inner(&self) -> Option<&dyn Connection> {
        Some(&*self.inner)
    }

    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
        self.inner.run(call).await
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        self.inner.run_batch(calls).await
    }

    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        self.inner.subscribe(channel).await
    }

    fn topology(&self) -> Topology {
        Topology { sharded_messages: true, ..self.inner.topology() }
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }
}

fn scene() -> Scene {
    let Setup { executor, connection: played, .. } = setup();
    let made = Arc::new(Made { inner: Arc::clone(&played), is_closed: AtomicBool::new(false) });
    let later = Arc::new(Later::to("h:1".to_owned(), executor.clone(), Duration::from_secs(3)));
    Scene { executor, later, played, made }
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
        let made = self.made.clone();
        self.later.clone().make(Backoff::new(PAUSES, 0), move || {
            let (failure, made) = (lock(&failures).pop_front(), made.clone());
            Box::pin(async move {
                match failure {
                    Some(kind) => Err(Error::because(kind, "connect", "by the test")),
                    None => Ok((made as Arc<dyn Connection>, 7)),
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
    assert!(scene.later.take_up(scene.made.clone()));
    let error = finish(waits).unwrap_err();
    assert_eq!((error.kind(), calls(&scene.played)), (ErrorKind::Unavailable, 0), "{error}");
    assert_eq!(finish(scene.later.run(call())), Err(unreachable()));
    assert_eq!(calls(&scene.played), 1, "a later one is");
}

#[test]
fn a_call_fails_with_the_last_failure_when_its_time_is_over() {
    let Scene { later, executor, .. } = scene();
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
    let began = executor.now();
    assert_eq!(finish(later.subscribe("inbox")).err(), Some(unreachable()));
    assert_eq!(executor.now() - began, Duration::from_secs(3));
    later.set_failed(ConnectionError::Unreachable("h:1: connection refused".to_owned()));
    let why = later.why_down("a").unwrap().to_string();
    assert_eq!(why.matches("h:1").count(), 1, "where it leads is told once: {why}");
}

/// The connection below may be made in the background as well.
#[test]
fn the_connection_below_knows_more() {
    let Scene { later: below, made, .. } = scene();
    let Setup { executor, .. } = setup();
    let later = Later::over(&(below.clone() as Arc<dyn Connection>), executor, Duration::from_secs(3));
    assert_eq!(later.why_down("a"), below.why_down("a"));
    assert!(later.why_down("a").unwrap().to_string().contains("h:1: "));
    later.close();
    assert_eq!(later.why_down("a"), Some(ConnectionError::Closed), "but not that this one was closed");
    let later = Later::over(&(below.clone() as Arc<dyn Connection>), setup().executor, Duration::from_secs(3));
    assert!(below.take_up(made));
    later.set_failed(unreachable());
    assert!(later.why_down("a").unwrap().to_string().contains("by the test"));
}

#[test]
fn attempts_follow_each_other_until_one_succeeds() {
    let scene = scene();
    let made = finish(scene.make(&[ErrorKind::Unavailable, ErrorKind::Denied, ErrorKind::Refused]));
    assert_eq!((made, scene.later.missing()), (Some(7), None));
    assert!(finish(scene.later.subscribe("inbox")).is_ok());
    assert!(scene.later.topology().sharded_messages, "it is that of what was made");
}

#[test]
fn what_time_does_not_mend_is_told_without_a_wait() {
    let Scene { later, .. } = scene();
    let mut waits = pin!(later.run(call()));
    assert!(poll(waits.as_mut()).is_pending());
    let denied = Error::because(ErrorKind::Denied, "connect", "wrong password");
    later.set_failed(ConnectionError::until_connected(&denied));
    let task::Poll::Ready(Err(error)) = poll(waits.as_mut()) else { panic!("it waits") };
    assert!(poll(pin!(later.run(call())).as_mut()).is_ready(), "a second one does not wait at all");
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
    assert!(!scene.later.take_up(scene.made.clone()), "an attempt that succeeds too late");
    assert!(scene.made.is_closed.load(Ordering::SeqCst), "what it has made is of no use");
    let subscribes = poll(pin!(scene.later.subscribe("inbox")).as_mut());
    assert!(matches!(subscribes, task::Poll::Ready(Err(ConnectionError::Closed))), "without a wait");
    assert_eq!(poll(pin!(scene.later.run(call())).as_mut()), task::Poll::Ready(Err(ConnectionError::Closed)));
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
    assert!(!scene.made.is_closed.load(Ordering::SeqCst));
    scene.later.close();
    assert!(scene.made.is_closed.load(Ordering::SeqCst));
    assert_eq!(scene.later.missing(), None, "from now on, what was made tells why nothing is executed");
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

#[test]
fn the_end_of_the_attempts_wakes_all_who_wait() {
    for closes in [false, true] {
        let Scene { later, made, .. } = scene();
        let woken = [(); 2].map(|()| Arc::new(Woken::default()));
        let wakers = woken.each_ref().map(Woken::waker);
        let mut calls = [later.run(call()), later.run(call())];
        for (call, waker) in calls.iter_mut().zip(&wakers) {
            assert!(call.as_mut().poll(&mut task::Context::from_waker(waker)).is_pending());
        }
        let counts = || woken.each_ref().map(|woken| woken.count());
        let before = counts();
        if closes {
            later.close();
        } else {
            assert!(later.take_up(made));
        }
        assert_eq!(counts(), before.map(|before| before + 1), "{closes}");
    }
}
