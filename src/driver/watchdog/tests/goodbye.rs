//! The calls of a watchdog that is dropped with its runtime.

use super::*;

/// The number of calls that are made for this number of attempts.
fn called(error: ConnectionError, attempts: usize, shutdown_timeout: Duration) -> usize {
    let calls = Calls::default();
    let executor = Arc::new(Virtual { now: Mutex::new(an_instant()), timers: Mutex::default() });
    let connection = Answers { executor: executor.clone(), error, later: true, calls: calls.clone() };
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
