use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::super::lab::{Lab, Tasks};
use super::*;
use crate::context::tests::{Played, Setup, finish, poll, setup, unreachable};
use crate::driver::retry::{Asker, Retry};
use crate::error::{Error, ErrorKind};
use crate::mutex::lock;
use crate::protocol::Script;
use crate::runtime::still::Still;

struct Scene {
    executor: Arc<Still>,
    later: InBackground,
    made: Made,
}

/// The connection that is made.
#[derive(Clone, Debug)]
struct Made {
    inner: Arc<Played>,
    is_closed: Arc<AtomicBool>,
}

#[async_trait]
impl Connection for Made {
    fn inner(&self) -> Option<&dyn Connection> {
        Some(&*self.inner)
    }

    async fn run(&self, call: Call<'_>) -> std::result::Result<Reply, ConnectionError> {
        self.inner.run(call).await
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<std::result::Result<Reply, ConnectionError>> {
        self.inner.run_batch(calls).await
    }

    async fn subscribe(&self, channel: &str) -> std::result::Result<BoxStream<'static, Notice>, ConnectionError> {
        self.inner.subscribe(channel).await
    }

    fn topology(&self) -> Topology {
        Topology { sharded_messages: true, ..self.inner.topology() }
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }
}

/// Its first `failures` attempts fail. The task that connects is not run.
fn scene(failures: usize) -> Scene {
    let Setup { executor, connection: inner, .. } = setup();
    executor.take_tasks();
    let made = Made { inner, is_closed: Arc::default() };
    let (makes, attempts) = (made.clone(), AtomicUsize::new(0));
    let runs: Arc<dyn Executor> = executor.clone();
    let config = Config { command_timeout: Duration::from_secs(3), ..Config::default() };
    let later = InBackground::start(&runs, "h:1".to_owned(), &config, 7, move || {
        let (made, fails) = (makes.clone(), attempts.fetch_add(1, Ordering::SeqCst) < failures);
        Box::pin(async move {
            let error = Error::because(ErrorKind::Unavailable, "connect", "by the test");
            if fails { Err(error) } else { Ok(Box::new(made) as Box<dyn Connection>) }
        })
    });
    Scene { executor, later, made }
}

impl Scene {
    /// Runs the task that connects until it ends.
    fn connect(&self) {
        self.executor.take_tasks().into_iter().for_each(finish);
    }

    fn calls(&self) -> usize {
        *lock(&self.made.inner.calls)
    }
}

fn call() -> Call<'static> {
    Call::new(Script::all().next().unwrap(), &[], &[])
}

#[test]
fn a_call_that_waited_for_the_connection_is_not_executed() {
    let scene = scene(3);
    let mut waits = pin!(scene.later.run(call()));
    assert!(poll(waits.as_mut()).is_pending());
    assert!(!scene.later.topology().sharded_messages);
    scene.connect();
    let error = finish(waits).unwrap_err();
    assert_eq!((error.kind(), scene.calls()), (ErrorKind::Unavailable, 0), "{error}");
    assert_eq!(finish(scene.later.run(call())), Err(unreachable()));
    assert_eq!(scene.calls(), 1, "a later one is");
    assert!(finish(scene.later.subscribe("inbox")).is_ok());
    assert!(scene.later.topology().sharded_messages, "it is that of what was made");
}

#[test]
fn a_call_waits_as_long_as_it_may() {
    let Scene { later, executor, .. } = scene(9);
    let told = |secs: u32| {
        let tried = Duration::from_secs(secs.into());
        let reason = "the first attempt to connect has not ended";
        Some(ConnectionError::Unreachable(format!("h:1: {reason} (connecting for {tried:?})")))
    };
    assert_eq!(finish(later.run(call())).err(), told(3));
    let one = Duration::from_secs(1);
    assert_eq!(finish(later.run_batch(&[call(), call().within(one)])).pop().unwrap().err(), told(4));
    assert_eq!(finish(later.run_acknowledged(&[call()], 1, one)).pop().unwrap().err(), told(5));
    assert_eq!(later.why_down("a"), told(5));
    let began = executor.now();
    assert!(matches!(finish(later.subscribe("inbox")).err(), Some(ConnectionError::Unreachable(_))));
    assert_eq!(executor.now() - began, Duration::from_secs(3));
}

/// The operations of a client over it say what it knows, and that they were closed themselves.
#[test]
fn a_client_over_it_tells_where_it_leads() {
    let Scene { later, executor, .. } = scene(9);
    let (first, keys) = (FirstConnect::new(String::new(), executor.clone()), setup().keys);
    let (engine, executor): (_, Arc<dyn Executor>) = (&setup().context.engine, executor);
    let limit = Duration::from_secs(3);
    let asker = Asker {
        executor: &executor,
        connection: &later,
        first: Some(&first),
        engine,
        retry_timeout: limit,
        command_timeout: limit,
    };
    let begins = || finish(Retry::new(asker, "lock", &keys, executor.now()).begin()).unwrap_err();
    let waited = std::error::Error::source(&begins()).map(ToString::to_string).unwrap_or_default();
    assert!(waited.contains("h:1: the first attempt") && waited.contains("connecting for 3s"), "{waited}");
    first.close();
    assert_eq!(begins().kind(), ErrorKind::Closed);
}

#[test]
fn closing_ends_the_attempts_and_all_calls() {
    let scene = scene(9);
    let mut waits = pin!(scene.later.run(call()));
    assert!(poll(waits.as_mut()).is_pending());
    scene.later.close();
    assert_eq!(finish(waits), Err(ConnectionError::Closed));
    scene.connect();
    let subscribes = poll(pin!(scene.later.subscribe("inbox")).as_mut());
    assert!(matches!(subscribes, std::task::Poll::Ready(Err(ConnectionError::Closed))), "without a wait");
    assert_eq!(poll(pin!(scene.later.run(call())).as_mut()), std::task::Poll::Ready(Err(ConnectionError::Closed)));
    assert_eq!(scene.calls(), 0);
}

#[test]
fn closing_closes_what_was_made() {
    let scene = scene(0);
    scene.connect();
    assert!(!scene.made.is_closed.load(Ordering::SeqCst));
    scene.later.close();
    assert!(scene.made.is_closed.load(Ordering::SeqCst));
}

/// No attempt succeeds.
#[test]
fn the_attempts_end_when_it_is_dropped() {
    let (lab, mut tasks) = (Lab::new(&[], 1), Tasks::new());
    let (executor, attempts): (Arc<dyn Executor>, _) = (lab.clone(), Arc::new(AtomicUsize::new(0)));
    let config = Config::default();
    let counted = Arc::clone(&attempts);
    let background = InBackground::start(&executor, "h:1".to_owned(), &config, 7, move || {
        counted.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Err(Error::because(ErrorKind::Unavailable, "connect", "by the test")) })
    });
    let began = lab.now();
    let called = background.run(Call::new(Script::all().next().unwrap(), &["a"], &[]));
    let failed = lab.run(&mut tasks, called).unwrap_err();
    assert!(matches!(&failed, ConnectionError::Unreachable(why) if why.contains("by the test")), "{failed}");
    assert_eq!(lab.now() - began, config.command_timeout);
    lab.run(&mut tasks, lab.sleep(Duration::from_secs(60)));
    let made = attempts.load(Ordering::SeqCst);
    assert!((60..120).contains(&made), "about one in 800 ms: {made}");
    let first = Arc::clone(&background.first);
    drop(background);
    lab.run(&mut tasks, lab.sleep(Duration::from_secs(60)));
    assert_eq!(attempts.load(Ordering::SeqCst), made);
    assert_eq!(first.missing(), Some(ConnectionError::Closed));
    assert!(tasks.is_empty());
}

#[test]
fn what_was_made_answers_for_the_connection() {
    let scene = scene(0);
    assert!(scene.later.inner().is_none());
    scene.connect();
    assert!(scene.later.inner().is_some());
}
