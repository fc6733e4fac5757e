//! A client whose server is simulated by the test: its retries and its tasks.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Mutex;
use std::task::{self, Poll, Waker};

use async_trait::async_trait;
use futures::future::pending;
use futures::stream::{self, BoxStream, StreamExt};

use super::*;
use crate::connection::{Call, ConnectionError, Notice, Reply, Topology};
use crate::engine::attempt::Queued;
use crate::mutex::lock;
use crate::protocol::dispatch::Failure;
use crate::protocol::kind::Kind;
use crate::runtime::still::Still;

pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// Gives these answers to the calls, one after the other. After the last one, the server is unreachable.
#[derive(Debug)]
pub(crate) struct Played {
    executor: Arc<Still>,
    pub(crate) answers: Mutex<VecDeque<Answer>>,
    pub(crate) calls: Mutex<usize>,
    /// The first key of each call.
    pub(crate) keys: Mutex<Vec<String>>,
    is_closed: Mutex<bool>,
}

#[derive(Debug)]
pub(crate) enum Answer {
    /// The ticket waits.
    Queued,
    Granted,
    /// Like `Granted`, but the answer takes as long as the lease.
    Late,
    /// Like `Granted`, but the answer takes this long.
    After(Duration),
    /// The answer to a request that releases the former hold.
    Requeued,
    OverLimit,
    /// Others hold it.
    Busy,
    /// Another client keeps it idle, or uses it.
    Retained,
    /// The request came too late.
    Stale,
    Listeners(i64),
    Unreachable,
    Never,
}

fn reply(word: &str, numbers: impl IntoIterator<Item = i64>) -> Reply {
    let word = (!word.is_empty()).then(|| word.split(' ').map(|word| Reply::Bytes(word.into())));
    Reply::Array(word.into_iter().flatten().chain(numbers.into_iter().map(Reply::Integer)).collect())
}

pub(crate) fn unreachable() -> ConnectionError {
    ConnectionError::Unreachable("by the test".to_owned())
}

#[async_trait]
impl Connection for Played {
    fn inner(&self) -> Option<&dyn Connection> {
        None
    }

    async fn run(&self, call: Call<'_>) -> std::result::Result<Reply, ConnectionError> {
        *lock(&self.calls) += 1;
        lock(&self.keys).extend(call.keys.first().map(|key| (*key).to_owned()));
        let answer = lock(&self.answers).pop_front();
        match answer.unwrap_or(Answer::Unreachable) {
            Answer::Queued => Ok(reply("QUEUED", [30_000, 1, 0, 5])),
            Answer::Granted => Ok(reply("GRANTED 1", [5])),
            Answer::Late => {
                self.executor.advance(LEASE);
                Ok(reply("GRANTED 1", [5]))
            }
            Answer::After(time) => {
                self.executor.advance(time);
                Ok(reply("GRANTED 1", [5]))
            }
            Answer::Requeued => Ok(reply("GRANTED 9", [0, 5])),
            Answer::OverLimit => Ok(reply("OVER", [1, 5])),
            Answer::Busy => Ok(reply("BUSY", [30_000, 0, 5])),
            Answer::Retained => Ok(reply("RETAINED", [30_000, 0, 5])),
            Answer::Stale => Ok(reply("STALE", [5])),
            Answer::Listeners(listeners) => Ok(reply("", [listeners, 5])),
            Answer::Unreachable => Err(unreachable()),
            Answer::Never => std::future::pending().await,
        }
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<std::result::Result<Reply, ConnectionError>> {
        calls.iter().map(|_| Err(unreachable())).collect()
    }

    async fn subscribe(&self, _: &str) -> std::result::Result<BoxStream<'static, Notice>, ConnectionError> {
        Ok(stream::pending().boxed())
    }

    fn topology(&self) -> Topology {
        Topology::single_server()
    }

    fn warnings(&self) -> Vec<Warning> {
        vec![Warning::Eviction { policy: "by the test".to_owned() }]
    }

    fn close(&self) {
        *lock(&self.is_closed) = true;
    }
}

pub(crate) struct Setup {
    pub(crate) context: Arc<Context>,
    pub(crate) executor: Arc<Still>,
    pub(crate) connection: Arc<Played>,
    pub(crate) keys: Arc<Keys>,
}

pub(crate) fn poll<F: Future + ?Sized>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut task::Context::from_waker(Waker::noop()))
}

/// Polls the future until it is done.
#[track_caller]
pub(crate) fn finish<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    for _ in 0..10_000 {
        if let Poll::Ready(output) = poll(future.as_mut()) {
            return output;
        }
    }
    panic!("it does not end");
}

pub(crate) fn setup() -> Setup {
    let executor = Arc::new(Still::new());
    let (answers, calls, keys, is_closed) = Default::default();
    let connection = Arc::new(Played { executor: executor.clone(), answers, calls, keys, is_closed });
    let opening = Opening::new(executor.clone(), connection.clone(), Config::default());
    let opening = Opening { client: Uuid::from_u128(1), ..opening };
    let context = finish(Context::start(opening, ready(Ok(())))).unwrap();
    let keys = Arc::new(Keys::new("p", Kind::Lock, "n").unwrap());
    Setup { context, executor, connection, keys }
}

#[test]
fn a_new_series_of_requests_has_the_whole_retry_timeout() {
    let setup = setup();
    let retry_timeout = setup.context.config.retry_timeout;
    let failure = || Failure::Connection(unreachable());
    let retry = || setup.context.retry("lock", &setup.keys);
    let mut first = retry();
    setup.executor.advance(retry_timeout);
    assert_eq!(finish(first.again_after(failure())).unwrap_err().kind(), ErrorKind::Unavailable);
    let mut retry = retry();
    setup.executor.advance(retry_timeout / 2);
    assert!(finish(retry.again_after(failure())).is_ok());
    setup.executor.advance(retry_timeout / 2);
    assert!(finish(retry.again_after(failure())).is_err());
}

#[test]
fn a_request_without_time_left_says_how_long_there_was_no_answer() {
    let second = Duration::from_secs(1);
    for (retry_timeout, told) in [(second, "nothing within 1s"), (Duration::ZERO, "nothing within 2s")] {
        let Setup { mut context, keys, .. } = setup();
        let config = &mut Arc::get_mut(&mut context).unwrap().config;
        (config.retry_timeout, config.command_timeout) = (retry_timeout, 2 * second);
        let retry = context.retry("lock", &keys);
        let request = pin!(pending::<std::result::Result<(), Failure>>());
        let error = finish(retry.bounded(context.now() + context.patience(), request)).unwrap_err();
        assert!(error.to_string().contains(told), "{error}");
    }
}

#[test]
fn a_lost_reply_to_a_release_makes_a_heartbeat_due() {
    let setup = setup();
    let now = setup.context.now();
    let id = setup.context.engine.open(&setup.keys, 1, LEASE, now).unwrap();
    let queued = Queued { sent: now, asked: 1, holder_left: Some(LEASE), call_again: false };
    setup.context.engine.queued(id, queued, now);
    assert_eq!(setup.context.engine.work(now).heartbeat.len(), 0);
    setup.context.reply_lost(&setup.keys);
    assert_eq!(setup.context.engine.work(now).heartbeat.len(), 1);
}

#[test]
fn the_tasks_end_with_the_context() {
    let setup = setup();
    let mut tasks: Vec<_> = setup.executor.take_tasks().into_iter().map(Some).collect();
    assert_eq!(tasks.len(), 2, "the inbox and the watchdog");
    let mut ended = || {
        for task in &mut tasks {
            task.take_if(|task| poll(task.as_mut()).is_ready());
        }
        tasks.iter().filter(|task| task.is_none()).count()
    };
    assert_eq!(ended(), 0);
    drop(setup.context);
    assert_eq!(ended(), 2);
}

#[test]
fn a_client_that_has_not_connected_says_why_and_ends_all_waits_when_it_is_closed() {
    let Setup { executor, connection, keys, .. } = setup();
    let config = Config { is_in_background: true, ..Config::default() };
    let context = Context::start_in_background(Opening::new(executor.clone(), connection.clone(), config));
    // The connection itself is up. The error of a caller whose own timeout is over says why the client is not.
    let why = context.why_down(keys.main()).unwrap().to_string();
    assert!(connection.why_down(keys.main()).is_none() && why.contains("the first attempt to connect"), "{why}");
    assert_eq!((context.warnings(), setup().context.warnings()), (Vec::new(), connection.warnings()));
    let mut series = context.retry("lock", &keys);
    let mut waits = pin!(series.begin());
    assert!(poll(waits.as_mut()).is_pending() && context.connecting().is_some());
    context.disconnect();
    let Poll::Ready(Err(error)) = poll(waits) else { panic!("it waits") };
    assert_eq!((error.kind(), error.name()), (ErrorKind::Closed, Some("n")));
    assert_eq!(context.why_down(keys.main()), Some(ConnectionError::Closed));
    assert!(*lock(&connection.is_closed), "also if the attempts are not polled any more");
}

#[test]
fn a_request_may_be_executed_for_as_long_as_a_future_waits_for_it() {
    let setup = setup();
    let (now, wait) = (setup.context.now(), setup.context.config.command_timeout.as_millis() as u64);
    assert_eq!(setup.context.not_after(now, None), 0, "the server's clock is not known");
    setup.context.observe(5_000);
    assert_eq!(setup.context.not_after(now, None), 5_100 + wait);
    assert_eq!(setup.context.not_after(now, Some(Duration::from_secs(1))), 6_100);
}

#[test]
fn a_client_id_is_used_by_one_client_at_a_time() {
    for (listeners, expected) in [(1, None), (2, Some(ErrorKind::ClientIdInUse))] {
        let Setup { executor, connection, .. } = setup();
        lock(&connection.answers).push_back(Answer::Listeners(listeners));
        let client = Uuid::from_u128(1);
        let config = Config { client_id: Some(client), ..Config::default() };
        let opening = Opening::new(executor, connection, config);
        let started = finish(Context::start(opening, ready(Ok(()))));
        assert_eq!(started.err().map(|error| error.kind()), expected);
    }
}
