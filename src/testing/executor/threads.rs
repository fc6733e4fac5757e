//! Threads that are none of the runtime, on which the checks run.

use std::thread;
use std::time::Duration;

use crate::testing::report::{Failing, panicked};

pub(super) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Runs `work` on a thread that is not one of the runtime.
#[expect(clippy::disallowed_methods, reason = "the check stands outside of what it checks")]
pub(super) fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> thread::JoinHandle<T> {
    thread::spawn(work)
}

/// The result of the thread, which has failed if it panicked.
pub(super) fn joined<T>(thread: thread::JoinHandle<T>) -> Result<T, Failing> {
    thread.join().map_err(|panic| panicked(&*panic))
}
