//! An executor that counts the tasks and timers of its users.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bowline::Executor;
use futures::future::BoxFuture;

/// Counts what is alive of all that was spawned and slept on it.
pub struct Tracking {
    executor: Arc<dyn Executor>,
    live: Arc<Live>,
}

#[derive(Default)]
struct Live {
    tasks: AtomicUsize,
    sleeps: AtomicUsize,
    /// All that there have been.
    slept: AtomicUsize,
}

impl Tracking {
    pub fn new(executor: Arc<dyn Executor>) -> Self {
        Self { executor, live: Arc::default() }
    }

    /// Tasks and timers that are alive.
    pub fn live(&self) -> (usize, usize) {
        (self.live.tasks.load(Ordering::SeqCst), self.live.sleeps.load(Ordering::SeqCst))
    }

    /// Timers set so far.
    pub fn timers_set(&self) -> usize {
        self.live.slept.load(Ordering::SeqCst)
    }

    fn track(&self, future: BoxFuture<'static, ()>, count: fn(&Live) -> &AtomicUsize) -> BoxFuture<'static, ()> {
        count(&self.live).fetch_add(1, Ordering::SeqCst);
        Box::pin(Tracked { future, _counted: Counted { live: self.live.clone(), count } })
    }
}

impl Executor for Tracking {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.executor.spawn(self.track(task, |live| &live.tasks));
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.live.slept.fetch_add(1, Ordering::SeqCst);
        self.track(self.executor.sleep(duration), |live| &live.sleeps)
    }

    fn now(&self) -> Instant {
        self.executor.now()
    }

    fn block_on(&self, future: BoxFuture<'_, ()>) -> bowline::Result<()> {
        self.executor.block_on(future)
    }
}

impl fmt::Debug for Tracking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.executor.fmt(f)
    }
}

struct Tracked {
    /// Dropped before it stops being counted.
    future: BoxFuture<'static, ()>,
    _counted: Counted,
}

impl Future for Tracked {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.future.as_mut().poll(context)
    }
}

struct Counted {
    live: Arc<Live>,
    count: fn(&Live) -> &AtomicUsize,
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.count)(&self.live).fetch_sub(1, Ordering::SeqCst);
    }
}
