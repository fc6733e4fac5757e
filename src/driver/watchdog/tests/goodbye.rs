//! The calls of a watchdog that is dropped with its runtime.

use super::*;

/// Answers at once, with or without a runtime.
#[derive(Clone, Debug)]
struct Refusing {
    error: ConnectionError,
    calls: Arc<Mutex<usize>>,
}

#[async_trait]
impl Connection for Refusing {
    async fn run(&self, _: Call<'_>) -> Result<Reply, ConnectionError> {
        *lock(&self.calls) += 1;
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

/// A key may be of a wrong type, which concerns one call. If the server is unreachable, every further call would fail.
#[test]
fn a_refusal_stops_only_its_own_call() {
    let unreachable = ConnectionError::Unreachable("no".to_owned());
    for (error, all) in [(ConnectionError::refused("WRONGTYPE not a hash"), true), (unreachable, false)] {
        let calls = Arc::<Mutex<usize>>::default();
        let executor = Arc::new(Virtual { now: Mutex::new(an_instant()), timers: Mutex::default() });
        let connection = Refusing { error, calls: calls.clone() };
        let watchdog = watchdog(&executor, Arc::new(connection));
        let keys = Arc::new(Keys::new("p", Kind::Lock, "n").unwrap());
        let left = 1_000;
        for _ in 0..left {
            let now = executor.now();
            watchdog.engine.abandon(watchdog.engine.open(&keys, 1, LEASE, now).unwrap(), now);
        }
        drop(watchdog.run());
        let calls = *lock(&calls);
        assert!(calls > 0 && (calls == left) == all, "{calls} calls");
    }
}
