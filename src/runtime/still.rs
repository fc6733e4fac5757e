//! An executor for tests that poll futures by hand.

use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;

use super::{Executor, an_instant, yield_once};
use crate::error::Result;
use crate::mutex::lock;

/// Keeps the tasks that are spawned, and runs none of them. A sleep advances the clock at once, and ends at its second
/// poll.
#[derive(Debug)]
pub(crate) struct Still {
    now: Mutex<Instant>,
    tasks: Tasks,
}

#[derive(Default)]
struct Tasks(Mutex<Vec<BoxFuture<'static, ()>>>);

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tasks")
    }
}

impl Still {
    pub(crate) fn new() -> Self {
        Self { now: Mutex::new(an_instant()), tasks: Tasks::default() }
    }

    /// The tasks that were spawned since the last call.
    pub(crate) fn take_tasks(&self) -> Vec<BoxFuture<'static, ()>> {
        std::mem::take(&mut *lock(&self.tasks.0))
    }

    pub(crate) fn advance(&self, time: Duration) {
        *lock(&self.now) += time;
    }
}

impl Executor for Still {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        lock(&self.tasks.0).push(task);
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.advance(duration);
        Box::pin(yield_once())
    }

    fn now(&self) -> Instant {
        *lock(&self.now)
    }

    fn block_on(&self, _: BoxFuture<'_, ()>) -> Result<()> {
        unreachable!("nothing blocks")
    }
}
