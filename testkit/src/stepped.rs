//! An executor whose clock moves when the test says so. Tasks and sockets are those of the runtime.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bowline::Executor;
use futures::channel::oneshot;
use futures::future::BoxFuture;

pub struct Stepped {
    runtime: Arc<dyn Executor>,
    start: Instant,
    clock: Mutex<Clock>,
}

#[derive(Default)]
struct Clock {
    passed: Duration,
    /// Longer timers end at once, if it says so.
    longest: Option<Duration>,
    /// When each is due, counted from the start.
    timers: Vec<(Duration, oneshot::Sender<()>)>,
}

impl Stepped {
    pub fn new(runtime: Arc<dyn Executor>) -> Self {
        Self { runtime, start: Instant::now(), clock: Mutex::default() }
    }

    /// Lets time pass, and fires the timers that are due.
    pub fn pass(&self, time: Duration) {
        let due: Vec<_> = {
            let mut clock = self.clock.lock().unwrap();
            clock.passed += time;
            let passed = clock.passed;
            let (due, left) = std::mem::take(&mut clock.timers).into_iter().partition(|(at, _)| *at <= passed);
            clock.timers = left;
            due
        };
        for (_, timer) in due {
            let _ = timer.send(());
        }
    }

    /// From now on, timers that are longer end at once, as all do at the end of a runtime.
    pub fn end_longer_ones(&self, longest: Option<Duration>) {
        self.clock.lock().unwrap().longest = longest;
    }

    /// The remaining times of all timers in use, the shortest first.
    pub fn timers(&self) -> Vec<Duration> {
        let mut clock = self.clock.lock().unwrap();
        clock.timers.retain(|(_, timer)| !timer.is_canceled());
        let passed = clock.passed;
        let mut left: Vec<Duration> = clock.timers.iter().map(|(at, _)| *at - passed).collect();
        left.sort_unstable();
        left
    }
}

impl Executor for Stepped {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.runtime.spawn(task);
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let (timer, fired) = oneshot::channel();
        let mut clock = self.clock.lock().unwrap();
        if clock.longest.is_some_and(|longest| duration > longest) {
            return Box::pin(async {});
        }
        let at = clock.passed + duration;
        clock.timers.push((at, timer));
        Box::pin(async move { fired.await.unwrap_or(()) })
    }

    fn now(&self) -> Instant {
        self.start + self.clock.lock().unwrap().passed
    }

    fn block_on(&self, future: BoxFuture<'_, ()>) -> bowline::Result<()> {
        self.runtime.block_on(future)
    }
}

impl fmt::Debug for Stepped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stepped")
    }
}
