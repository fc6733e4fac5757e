//! A watchdog whose clock the test moves, and whose server answers as the test says.

use std::fmt;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Instant;

use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use uuid::Uuid;

use super::*;
use crate::config::Config;
use crate::connection::Topology;
use crate::protocol::attempt_id::AttemptId;

pub(super) const LEASE: Duration = Duration::from_secs(30);

/// A clock that the test moves.
#[derive(Debug)]
pub(super) struct Virtual {
    pub(super) now: Mutex<Instant>,
    pub(super) timers: Mutex<Vec<(Instant, Waker)>>,
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

/// The time of each call, its script, and its time limit.
pub(super) type Calls = Arc<Mutex<Vec<(Instant, &'static str, Option<Duration>)>>>;

/// What the server answers to a call.
pub(super) type Answer = Arc<dyn Fn(&Call<'_>) -> Result<Reply, ConnectionError> + Send + Sync>;

pub(super) fn fails(error: ConnectionError) -> Answer {
    Arc::new(move |_| Err(error.clone()))
}

/// Answers as the test says, with and without a runtime, and records the time of each call.
#[derive(Clone)]
pub(super) struct Answers {
    pub(super) executor: Arc<Virtual>,
    pub(super) answer: Answer,
    /// Whether the answer to the call of this number comes at the second poll instead of the first.
    pub(super) is_late: fn(usize) -> bool,
    pub(super) calls: Calls,
    pub(super) is_down: bool,
}

impl Answers {
    pub(super) fn new(executor: &Arc<Virtual>, answer: Answer) -> Self {
        let executor = Arc::clone(executor);
        Self { executor, answer, is_late: |_| false, calls: Calls::default(), is_down: false }
    }
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

    fn why_down(&self, _: &str) -> Option<ConnectionError> {
        self.is_down.then(|| ConnectionError::Unreachable("no".to_owned()))
    }

    fn without_runtime(&self, _: Duration) -> Option<Box<dyn Connection>> {
        Some(Box::new(self.clone()))
    }

    fn close(&self) {}
}

pub(super) struct Setup {
    pub(super) engine: Arc<Engine>,
    pub(super) executor: Arc<Virtual>,
    pub(super) calls: Calls,
    pub(super) task: Pin<Box<dyn Future<Output = ()> + Send>>,
    pub(super) keys: Arc<Keys>,
    pub(super) polls: usize,
}

pub(super) fn watchdog(executor: &Arc<Virtual>, connection: Arc<dyn Connection>) -> Watchdog {
    Watchdog {
        engine: Arc::new(Engine::new(Uuid::from_u128(1), false)),
        executor: Arc::new(executor.clone()),
        connection,
        clock: Arc::default(),
        inbox_prefix: "p:inbox:".into(),
        label: None,
        retry_timeout: LEASE,
        command_timeout: Duration::from_secs(3),
        shutdown_timeout: Duration::from_millis(250),
    }
}

pub(super) fn setup(error: ConnectionError) -> Setup {
    setup_with(fails(error))
}

pub(super) fn setup_with(answer: Answer) -> Setup {
    labelled("", answer)
}

/// A client with a label, unless it is empty.
pub(super) fn labelled(label: &str, answer: Answer) -> Setup {
    connected(label, answer, true)
}

pub(super) fn connected(label: &str, answer: Answer, is_connected: bool) -> Setup {
    let executor = Arc::new(Virtual { now: Mutex::new(an_instant()), timers: Mutex::default() });
    let calls = Calls::default();
    let connection = Answers { calls: calls.clone(), is_down: !is_connected, ..Answers::new(&executor, answer) };
    let watchdog = watchdog(&executor, Arc::new(connection));
    let config = Config::builder().label(label).build().unwrap();
    let label = Labelled::new(&config, Uuid::from_u128(1), &watchdog.clock, None);
    let watchdog = Watchdog { label, ..watchdog };
    let engine = watchdog.engine.clone();
    let keys = Arc::new(Keys::new("p", Kind::Lock, "n").unwrap());
    Setup { engine, executor, calls, task: Box::pin(watchdog.run()), keys, polls: 0 }
}

impl Setup {
    pub(super) fn open(&self) -> AttemptId {
        self.engine.open(&self.keys, 1, LEASE, self.executor.now()).unwrap()
    }

    /// Lets that much time pass.
    pub(super) fn run(&mut self, time: Duration) {
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

    pub(super) fn called(&self, script: &str) -> usize {
        lock(&self.calls).iter().filter(|(_, name, _)| *name == script).count()
    }
}
