//! The calls of a watchdog that is dropped with its runtime.

use std::task::{Context, Waker};
use std::time::Instant;

use futures::future::BoxFuture;

use super::lab::Answer;
use super::*;
use crate::connection::Arg;
use crate::runtime::yield_once;

/// The number of calls that are made for this number of attempts.
fn called(error: ConnectionError, attempts: usize, shutdown_timeout: Duration) -> usize {
    let calls = Calls::default();
    let executor = Arc::new(Virtual { now: Mutex::new(an_instant()), timers: Mutex::default() });
    let connection = Answers { is_late: |_| true, calls: calls.clone(), ..Answers::new(&executor, fails(error)) };
    let watchdog = Watchdog { shutdown_timeout, ..watchdog(&executor, Arc::new(connection)) };
    let keys = Arc::new(Keys::new("p", Kind::Lock, "n").unwrap());
    for _ in 0..attempts {
        let now = executor.now();
        watchdog.engine.abandon(watchdog.engine.open(&keys, 1, LEASE, now).unwrap(), now);
    }
    drop(watchdog.run());
    lock(&calls).len()
}

const WITHIN: Duration = Duration::from_millis(250);

fn wrong_type() -> ConnectionError {
    ConnectionError::refused("WRONGTYPE not a hash")
}

/// A key of a wrong type concerns one call only. If the server is unreachable, every further call would fail too.
#[test]
fn a_refusal_stops_only_its_own_call() {
    let attempts = 1_000;
    assert_eq!(called(wrong_type(), attempts, WITHIN), attempts);
    let calls = called(ConnectionError::Unreachable("no".to_owned()), attempts, WITHIN);
    assert!(calls > 0 && calls < attempts, "{calls} calls");
}

#[test]
fn without_a_shutdown_timeout_nothing_is_called() {
    assert_eq!(called(wrong_type(), 1, Duration::ZERO), 0);
}

/// The runtime drops the task of the connection on one thread, while another thread still polls the watchdog.
#[test]
fn a_clean_up_that_finds_the_connection_closed_is_left_to_the_good_bye() {
    let mut setup = setup(ConnectionError::Closed);
    let id = setup.open();
    setup.engine.abandon(id, setup.executor.now());
    // The client's last handle is gone as well.
    setup.engine.end(setup.executor.now());
    setup.run(Duration::from_millis(1));
    let before = setup.called("lock_cancel");
    assert!(before > 0);
    let calls = setup.calls.clone();
    drop(setup);
    assert_eq!(lock(&calls).len(), before + 1);
}

/// Closing has waited for as long as the shutdown timeout allows.
#[test]
fn a_client_that_closes_its_connection_leaves_the_rest_to_the_leases() {
    let mut setup = setup(ConnectionError::Closed);
    let id = setup.open();
    setup.engine.abandon(id, setup.executor.now());
    setup.run(Duration::from_millis(1));
    let before = setup.called("lock_cancel");
    setup.engine.end_now(setup.executor.now());
    assert!(setup.task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready(), "it ends");
    let calls = setup.calls.clone();
    drop(setup);
    assert_eq!(lock(&calls).len(), before);
}

/// A runtime that shuts down: sleeps end early, at their second poll.
#[derive(Debug)]
struct ShutDown(Instant);

impl Executor for ShutDown {
    fn spawn(&self, _: BoxFuture<'static, ()>) {}

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(yield_once())
    }

    fn now(&self) -> Instant {
        self.0
    }

    fn block_on(&self, _: BoxFuture<'_, ()>) -> crate::error::Result<()> {
        unreachable!("nothing blocks")
    }
}

/// The runtime can drop a task only while it is pending.
#[test]
fn clean_ups_that_fail_at_once_do_not_keep_the_runtime_from_its_end() {
    let executor = Arc::new(Virtual { now: Mutex::new(an_instant()), timers: Mutex::default() });
    let (now, calls) = (executor.now(), Calls::default());
    // The second answer comes one poll later, so the two clean-ups are ready by turns.
    let connection = Answers { is_late: |n| n == 2, calls, ..Answers::new(&executor, fails(ConnectionError::Closed)) };
    let watchdog = Watchdog { executor: Arc::new(ShutDown(now)), ..watchdog(&executor, Arc::new(connection)) };
    let (engine, keys) = (watchdog.engine.clone(), Arc::new(Keys::new("p", Kind::Lock, "n").unwrap()));
    for _ in 0..2 {
        engine.abandon(engine.open(&keys, 1, LEASE, now).unwrap(), now);
    }
    let mut task = Box::pin(watchdog.run());
    for _ in 0..100 {
        assert!(task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
}

/// What is left on the server would block others for a lease. Clean-ups that were begun are finished before the next
/// batch.
#[test]
fn a_clean_up_that_is_not_finished_by_one_call_is_called_again() {
    const ATTEMPTS: usize = 300;
    const BATCH: usize = 256;
    let executor = Arc::new(Virtual { now: Mutex::new(an_instant()), timers: Mutex::default() });
    let called = Arc::<Mutex<Vec<String>>>::default();
    // Before each of our tickets, the server has more dead tickets than one call may remove. It asks for one more call.
    let heard = Arc::clone(&called);
    let answer: Answer = Arc::new(move |call| {
        let Arg::Text(ticket) = call.args[0] else { panic!("{:?}", call.args) };
        let (ticket, mut heard) = (ticket.to_owned(), lock(&heard));
        let call_again = !heard.contains(&ticket);
        heard.push(ticket);
        Ok(Reply::Array(vec![Reply::Bytes(b"GONE".to_vec()), Reply::Integer(call_again.into()), Reply::Integer(5)]))
    });
    let connection = Answers::new(&executor, answer);
    let watchdog = watchdog(&executor, Arc::new(connection));
    let keys = Arc::new(Keys::new("p", Kind::Lock, "n").unwrap());
    for _ in 0..ATTEMPTS {
        let now = executor.now();
        watchdog.engine.abandon(watchdog.engine.open(&keys, 1, LEASE, now).unwrap(), now);
    }
    drop(watchdog.run());
    let called = lock(&called);
    assert_eq!(called.len(), 2 * ATTEMPTS);
    let (first, again) = called.split_at(BATCH);
    assert_eq!(&again[..BATCH], first);
}
