use std::fmt;
use std::mem;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Waker};
use std::time::Instant;

use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use uuid::Uuid;

use super::*;
use crate::connection::{Call, ConnectionError, Notice, Reply, Topology};
use crate::engine::cleanups::MOST;
use crate::engine::lease::{Loss, Term};
use crate::mutex::lock;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::key::Keys;
use crate::protocol::kind::Kind;
use crate::protocol::token::Token;
use crate::runtime::an_instant;

mod goodbye;
mod replicas;

const LEASE: Duration = Duration::from_secs(30);

/// A clock that the test moves.
#[derive(Debug)]
struct Virtual {
    now: Mutex<Instant>,
    timers: Mutex<Vec<(Instant, Waker)>>,
}

impl Executor for Arc<Virtual> {
    fn spawn(&self, _: BoxFuture<'static, ()>) {
        unreachable!("the watchdog spawns nothing")
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let (this, until) = (self.clone(), self.now() + duration);
        Box::pin(future::poll_fn(move |context| {
            if this.now() >= until {
                return Poll::Ready(());
            }
            lock(&this.timers).push((until, context.waker().clone()));
            Poll::Pending
        }))
    }

    fn now(&self) -> Instant {
        *lock(&self.now)
    }

    fn block_on(&self, _: BoxFuture<'_, ()>) -> crate::error::Result<()> {
        unreachable!("nothing blocks")
    }
}

/// The time of each call, its script, and how long its answer is of use.
type Calls = Arc<Mutex<Vec<(Instant, &'static str, Option<Duration>)>>>;

/// What the server answers to a call.
type Answer = Arc<dyn Fn(&Call<'_>) -> Result<Reply, ConnectionError> + Send + Sync>;

fn fails(error: ConnectionError) -> Answer {
    Arc::new(move |_| Err(error.clone()))
}

/// Answers as the test says, with and without a runtime, and records the time of each call.
#[derive(Clone)]
struct Answers {
    executor: Arc<Virtual>,
    answer: Answer,
    /// Whether the answer to the call of this number comes at the second poll instead of the first.
    is_late: fn(usize) -> bool,
    calls: Calls,
}

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answers")
    }
}

#[async_trait]
impl Connection for Answers {
    fn inner(&self) -> Option<&dyn Connection> {
        None
    }

    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
        let called = {
            let mut calls = lock(&self.calls);
            calls.push((self.executor.now(), call.script.name(), call.within));
            calls.len()
        };
        assert!(called < 100_000, "it calls without end");
        let mut waits = (self.is_late)(called);
        let answered = future::poll_fn(|context| {
            if !mem::take(&mut waits) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        });
        answered.await;
        (self.answer)(&call)
    }

    async fn run_batch(&self, _: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        Vec::new()
    }

    async fn subscribe(&self, _: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        Err(ConnectionError::Closed)
    }

    fn topology(&self) -> Topology {
        Topology::single_server()
    }

    fn without_runtime(&self, _: Duration) -> Option<Box<dyn Connection>> {
        Some(Box::new(self.clone()))
    }

    fn close(&self) {}
}

struct Setup {
    engine: Arc<Engine>,
    executor: Arc<Virtual>,
    calls: Calls,
    task: Pin<Box<dyn Future<Output = ()> + Send>>,
    keys: Arc<Keys>,
    polls: usize,
}

fn watchdog(executor: &Arc<Virtual>, connection: Arc<dyn Connection>) -> Watchdog {
    Watchdog {
        engine: Arc::new(Engine::new(Uuid::from_u128(1), false)),
        executor: Arc::new(executor.clone()),
        connection,
        clock: Arc::default(),
        inbox_prefix: "p:inbox:".into(),
        retry_timeout: LEASE,
        command_timeout: Duration::from_secs(3),
        shutdown_timeout: Duration::from_millis(250),
    }
}

fn setup(error: ConnectionError) -> Setup {
    let executor = Arc::new(Virtual { now: Mutex::new(an_instant()), timers: Mutex::default() });
    let calls = Calls::default();
    let connection =
        Answers { executor: executor.clone(), answer: fails(error), is_late: |_| false, calls: calls.clone() };
    let watchdog = watchdog(&executor, Arc::new(connection));
    let engine = watchdog.engine.clone();
    let keys = Arc::new(Keys::new("p", Kind::Lock, "n").unwrap());
    Setup { engine, executor, calls, task: Box::pin(watchdog.run()), keys, polls: 0 }
}

impl Setup {
    fn open(&self) -> AttemptId {
        self.engine.open(&self.keys, 1, LEASE, self.executor.now()).unwrap()
    }

    /// Lets that much time pass.
    fn run(&mut self, time: Duration) {
        let until = self.executor.now() + time;
        loop {
            // Polls twice, because the first poll may set off more work. A task that wakes itself without end would not
            // finish here.
            for _ in 0..2 {
                self.polls += 1;
                assert!(self.task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending(), "it ended");
            }
            let mut timers = lock(&self.executor.timers);
            let next = timers.iter().map(|(at, _)| *at).min().unwrap_or(until).min(until);
            let (due, later) = mem::take(&mut *timers).into_iter().partition(|(at, _)| *at <= next);
            *timers = later;
            drop(timers);
            *lock(&self.executor.now) = next;
            let due: Vec<(Instant, Waker)> = due;
            due.into_iter().for_each(|(_, waker)| waker.wake());
            if next == until {
                return;
            }
        }
    }

    fn called(&self, script: &str) -> usize {
        lock(&self.calls).iter().filter(|(_, name, _)| *name == script).count()
    }
}

fn refusal() -> ConnectionError {
    ConnectionError::refused("LOADING Redis is loading the dataset in memory")
}

#[test]
fn a_clean_up_that_is_refused_is_not_repeated_without_pause() {
    for error in [refusal(), ConnectionError::Unreachable("no".to_owned()), ConnectionError::Unknown("no".to_owned())] {
        let mut setup = setup(error);
        setup.engine.abandon(setup.open(), setup.executor.now());
        setup.run(Duration::from_secs(1));
        assert!((3..=7).contains(&setup.called("lock_cancel")), "{}", setup.called("lock_cancel"));
        setup.run(Duration::from_secs(10));
        let later = setup.called("lock_cancel");
        assert!((10..=24).contains(&later), "{later}");
        // The lease of the hold ends.
        setup.run(LEASE);
        let all = setup.called("lock_cancel");
        setup.run(LEASE);
        assert_eq!(setup.called("lock_cancel"), all);
        assert!(setup.polls < all * 40, "{} polls", setup.polls);
    }
}

/// They may be those of one node of a cluster, which is down.
#[test]
fn clean_ups_that_fail_do_not_hold_up_others() {
    let mut setup = setup(ConnectionError::Unreachable("no".to_owned()));
    for _ in 0..MOST {
        setup.engine.abandon(setup.open(), setup.executor.now());
    }
    setup.keys = Arc::new(Keys::new("p", Kind::Semaphore { limit: 1 }, "n").unwrap());
    setup.engine.abandon(setup.open(), setup.executor.now());
    setup.run(LEASE / 6);
    assert!(setup.called("permit_cancel") > 0);
}

#[test]
fn a_renewal_that_is_refused_is_not_repeated_without_pause() {
    let mut setup = setup(refusal());
    let hold = setup.engine.hold(
        setup.open(),
        1,
        Token::new(1),
        Term::Renewed,
        setup.executor.now() + LEASE,
        setup.executor.now(),
    );
    let hold = hold.unwrap();
    setup.run(Duration::from_secs(8));
    assert_eq!(setup.called("lock_renew"), 0);
    setup.run(Duration::from_secs(21));
    assert!((15..=35).contains(&setup.called("lock_renew")), "{}", setup.called("lock_renew"));
    assert!(hold.loss(setup.executor.now()).is_none());
    setup.run(Duration::from_secs(2));
    assert!((18..=60).contains(&setup.called("lock_renew")), "{}", setup.called("lock_renew"));
    assert_eq!(hold.loss(setup.executor.now()), Some(Loss::Expired));
    let calls = lock(&setup.calls).clone();
    let renewals: Vec<_> = calls.iter().filter(|(_, name, _)| *name == "lock_renew").collect();
    for (at, _, within) in &renewals {
        let left = (LEASE - at.saturating_duration_since(renewals[0].0)).as_secs_f64();
        let within = within.unwrap().as_secs_f64();
        assert!(within <= 3.0 && within <= (left / 2.0).max(0.11), "{within} with {left} left");
    }
    assert!(renewals.last().unwrap().2.unwrap() < Duration::from_secs(1), "with little left");
}

#[test]
fn heartbeats_that_are_refused_are_not_repeated_without_pause() {
    let mut setup = setup(refusal());
    let (id, now) = (setup.open(), setup.executor.now());
    let queued = crate::engine::attempt::Queued { sent: now, asked: 1, holder_left: None, call_again: false };
    setup.engine.queued(id, queued, now);
    setup.run(LEASE);
    assert!((8..=30).contains(&setup.called("lock_heartbeat")), "{}", setup.called("lock_heartbeat"));
}

/// The runtime may be shut down before it has polled the task once.
#[test]
fn a_task_that_is_dropped_unpolled_ends_everything() {
    let setup = setup(refusal());
    let (id, now) = (setup.open(), setup.executor.now());
    let hold = setup.engine.hold(id, 1, Token::new(1), Term::Renewed, now + LEASE, now).unwrap();
    drop(setup.task);
    assert!(setup.engine.is_closed());
    assert_eq!(hold.loss(now), Some(Loss::Closed));
}

#[test]
fn an_attempt_that_has_expired_is_not_cleaned_up() {
    for (left, calls) in [(Duration::from_nanos(1), 1), (Duration::ZERO, 0)] {
        let mut setup = setup(ConnectionError::Unreachable("no".to_owned()));
        setup.engine.abandon(setup.open(), setup.executor.now());
        *lock(&setup.executor.now) += LEASE - left;
        setup.run(Duration::ZERO);
        assert_eq!(setup.called("lock_cancel"), calls, "with {left:?} of its lease left");
    }
}

#[test]
fn a_clean_up_that_can_never_succeed_is_not_repeated() {
    let mut setup =
        setup(ConnectionError::refused("WRONGTYPE Operation against a key holding the wrong kind of value"));
    setup.engine.abandon(setup.open(), setup.executor.now());
    setup.run(LEASE);
    assert_eq!(setup.called("lock_cancel"), 1);
}
