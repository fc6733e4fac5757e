//! The calls of a watchdog that is dropped with its runtime.

use std::mem;

use super::*;

/// Answers at the second poll, with or without a runtime.
#[derive(Clone, Debug)]
struct Refusing {
    error: ConnectionError,
    calls: Arc<Mutex<usize>>,
}

#[async_trait]
impl Connection for Refusing {
    async fn run(&self, _: Call<'_>) -> Result<Reply, ConnectionError> {
        *lock(&self.calls) += 1;
        let mut is_first = true;
        let second_poll = future::poll_fn(|context| {
            context.waker().wake_by_ref();
            if mem::take(&mut is_first) { Poll::Pending } else { Poll::Ready(()) }
        });
        second_poll.await;
        Err(self.error.clone())
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

/// The number of calls for so many attempts.
fn called(error: ConnectionError, attempts: usize, shutdown_timeout: Duration) -> usize {
    let calls = Arc::<Mutex<usize>>::default();
    let executor = Arc::new(Virtual { now: Mutex::new(an_instant()), timers: Mutex::default() });
    let connection = Refusing { error, calls: calls.clone() };
    let watchdog = Watchdog { shutdown_timeout, ..watchdog(&executor, Arc::new(connection)) };
    let keys = Arc::new(Keys::new("p", Kind::Lock, "n").unwrap());
    for _ in 0..attempts {
        let now = executor.now();
        watchdog.engine.abandon(watchdog.engine.open(&keys, 1, LEASE, now).unwrap(), now);
    }
    drop(watchdog.run());
    *lock(&calls)
}

const WITHIN: Duration = Duration::from_millis(250);

fn wrong_type() -> ConnectionError {
    ConnectionError::refused("WRONGTYPE not a hash")
}

/// A key may be of a wrong type, which concerns one call. If the server is unreachable, every further call would fail.
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
