use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use std::time::Instant;

use async_trait::async_trait;
use futures::stream;
use uuid::Uuid;

use super::*;
use crate::connection::{Call, Reply, Topology};
use crate::engine::Engine;
use crate::engine::attempt::Queued;
use crate::mutex::lock;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::key::Keys;
use crate::protocol::kind::Kind;
use crate::runtime::an_instant;

const LEASE: Duration = Duration::from_secs(30);

/// A clock that the test moves.
#[derive(Clone, Debug)]
struct Clock(Arc<Mutex<(Instant, Vec<Waker>)>>);

impl Clock {
    fn pass(&self, time: Duration) {
        let sleepers = {
            let mut clock = lock(&self.0);
            clock.0 += time;
            std::mem::take(&mut clock.1)
        };
        sleepers.into_iter().for_each(Waker::wake);
    }
}

impl Executor for Clock {
    fn spawn(&self, _: BoxFuture<'static, ()>) {
        unreachable!("inboxes spawn nothing")
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let (clock, until) = (self.clone(), self.now() + duration);
        Box::pin(poll_fn(move |context| {
            let mut clock = lock(&clock.0);
            if clock.0 >= until {
                return Poll::Ready(());
            }
            clock.1.push(context.waker().clone());
            Poll::Pending
        }))
    }

    fn now(&self) -> Instant {
        lock(&self.0).0
    }

    fn block_on(&self, _: BoxFuture<'_, ()>) -> crate::error::Result<()> {
        unreachable!("nothing blocks")
    }
}

/// Fails these subscriptions, and confirms all others.
#[derive(Debug)]
struct Channels {
    failures: Mutex<VecDeque<ConnectionError>>,
    /// Each subscription that is open has a reference.
    subscribed: Arc<()>,
}

#[async_trait]
impl Connection for Channels {
    fn inner(&self) -> Option<&dyn Connection> {
        None
    }

    async fn run(&self, _: Call<'_>) -> Result<Reply, ConnectionError> {
        Err(ConnectionError::Closed)
    }

    async fn run_batch(&self, _: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        Vec::new()
    }

    async fn subscribe(&self, _: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        if let Some(failure) = lock(&self.failures).pop_front() {
            return Err(failure);
        }
        let subscribed = self.subscribed.clone();
        let silence = move |_: &mut Context<'_>| {
            let _ = &subscribed;
            Poll::Pending
        };
        Ok(stream::poll_fn(silence).boxed())
    }

    fn topology(&self) -> Topology {
        Topology::single_server()
    }

    fn close(&self) {}
}

struct Setup {
    engine: Arc<Engine>,
    clock: Clock,
    channels: Arc<Channels>,
    task: Pin<Box<dyn Future<Output = ()>>>,
    keys: Arc<Keys>,
}

fn setup(failures: &[ConnectionError]) -> Setup {
    let clock = Clock(Arc::new(Mutex::new((an_instant(), Vec::new()))));
    let channels = Channels { failures: Mutex::new(failures.to_vec().into()), subscribed: Arc::default() };
    let (channels, engine) = (Arc::new(channels), Arc::new(Engine::new(Uuid::from_u128(1), true)));
    let reader =
        Reader { executor: Arc::new(clock.clone()), connection: channels.clone(), engine: Arc::clone(&engine) };
    let task = Box::pin(async move { Slots::new(&reader, |slot| format!("inbox:{slot}")).read().await });
    let keys = Arc::new(Keys::new("p", Kind::Lock, "n").unwrap());
    Setup { engine, clock, channels, task, keys }
}

impl Setup {
    /// Opens an attempt that waits. Its next heartbeat is not due soon.
    fn wait(&self) -> AttemptId {
        let now = self.clock.now();
        let id = self.engine.open(&self.keys, 1, LEASE, now).unwrap();
        let queued = Queued { sent: now, asked: 1, holder_left: Some(LEASE), call_again: false };
        self.engine.queued(id, queued, now);
        assert_eq!(self.heartbeats(), 0);
        id
    }

    fn heartbeats(&self) -> usize {
        self.engine.work(self.clock.now()).heartbeat.len()
    }

    fn run(&mut self) {
        for _ in 0..10 {
            assert!(self.task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
    }

    fn subscribed(&self) -> usize {
        Arc::strong_count(&self.channels.subscribed) - 1
    }
}

#[test]
fn a_confirmed_subscription_asks_about_what_was_missed_before() {
    let mut setup = setup(&[]);
    setup.wait();
    setup.run();
    assert_eq!((setup.subscribed(), setup.heartbeats()), (1, 1));
}

/// No message reaches the waiters before the next attempt to subscribe.
#[test]
fn a_subscription_that_fails_asks_about_the_waiters() {
    let mut setup = setup(&[ConnectionError::Unreachable("by the test".to_owned())]);
    setup.wait();
    setup.run();
    assert_eq!((setup.subscribed(), setup.heartbeats()), (0, 1));
    setup.clock.pass(Duration::from_secs(1));
    setup.run();
    assert_eq!(setup.subscribed(), 1);
}

#[test]
fn an_inbox_in_which_nothing_waits_is_closed() {
    let mut setup = setup(&[]);
    let id = setup.wait();
    setup.run();
    assert_eq!(setup.subscribed(), 1);
    setup.engine.forget(id);
    for seconds in 0..120 {
        assert!(seconds > 30 || setup.subscribed() == 1, "closed after {seconds} s");
        setup.clock.pass(Duration::from_secs(1));
        setup.run();
    }
    assert_eq!(setup.subscribed(), 0);
    // The next waiter opens it again.
    setup.wait();
    setup.run();
    assert_eq!(setup.subscribed(), 1);
}
