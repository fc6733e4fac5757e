//! What only tokio has: runtimes that end, contexts, paused clocks.

use std::thread::JoinHandle;

use bowline::ErrorKind;
use bowline::tokio::Tokio;
use futures::channel::oneshot;
use tokio::runtime::{Builder, Handle, Runtime};

use super::*;

pub(super) fn multi_thread() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A current-thread runtime with a thread that drives it.
pub(super) struct Driven {
    pub(super) handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Driven {
    pub(super) fn start() -> Self {
        let (stop, stopped) = oneshot::channel();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let handle = runtime.handle().clone();
        let thread = thread::spawn(move || {
            let _ = runtime.block_on(stopped);
        });
        Self { handle, stop: Some(stop), thread: Some(thread) }
    }
}

/// Returns when the runtime is shut down.
impl Drop for Driven {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Runs `test` with a runtime of either kind and the way to shut it down.
fn with_each(test: fn(Tokio, Box<dyn FnOnce() + Send>)) {
    bounded(move || {
        let runtime = multi_thread();
        test(Tokio::new(runtime.handle().clone()), Box::new(move || drop(runtime)));
        let runtime = multi_thread();
        test(Tokio::new(runtime.handle().clone()), Box::new(move || runtime.shutdown_background()));
        let runtime = Driven::start();
        test(Tokio::new(runtime.handle.clone()), Box::new(move || drop(runtime)));
    });
}

/// Sends when it is dropped.
struct Dropped(mpsc::Sender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[test]
fn block_on_works_in_spawn_blocking() {
    bounded(|| {
        let runtime = multi_thread();
        let blocking = runtime.spawn(async {
            let executor = Tokio::current().unwrap();
            tokio::task::spawn_blocking(move || executor.block_on(executor.sleep(ms(5)))).await.unwrap()
        });
        block_on(blocking).unwrap().unwrap();
    });
}

#[test]
fn shutdown_drops_tasks_and_later_ones_do_not_run() {
    with_each(|executor, shut_down| {
        let (sender, dropped) = mpsc::channel();
        let (running, runs) = mpsc::channel();
        let guard = Dropped(sender.clone());
        executor.spawn(Box::pin(async move {
            let _guard = guard;
            running.send(()).unwrap();
            std::future::pending::<()>().await;
        }));
        runs.recv().unwrap();
        shut_down();
        dropped.recv().unwrap();
        let guard = Dropped(sender);
        executor.spawn(Box::pin(async move {
            let _guard = guard;
            std::future::pending::<()>().await;
        }));
        dropped.recv().unwrap();
    });
}

#[test]
fn after_shutdown_nothing_panics_or_hangs() {
    with_each(|executor, shut_down| {
        let unpolled = executor.sleep(ms(3_600_000));
        let (polled, polls) = mpsc::channel();
        let waiting = {
            let mut sleep = executor.sleep(ms(3_600_000));
            thread::spawn(move || {
                assert!(block_on(async { futures::poll!(&mut sleep) }).is_pending());
                polled.send(()).unwrap();
                block_on(sleep);
            })
        };
        let blocked = {
            let executor = executor.clone();
            thread::spawn(move || executor.block_on(Box::pin(std::future::pending())))
        };
        polls.recv().unwrap();
        shut_down();
        waiting.join().unwrap();
        assert_eq!(blocked.join().unwrap().unwrap_err().kind(), ErrorKind::Closed);
        block_on(unpolled);
        block_on(executor.sleep(ms(3_600_000)));
        block_on(executor.sleep(Duration::MAX));
        let error = executor.block_on(Box::pin(async {})).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
        assert!(executor.now() <= executor.now());
        assert!(format!("{executor:?}").contains("true"));
    });
}

#[test]
fn a_runtime_that_was_down_from_the_start() {
    bounded(|| {
        let runtime = multi_thread();
        let handle = runtime.handle().clone();
        drop(runtime);
        let executor = Tokio::new(handle);
        block_on(executor.sleep(Duration::MAX));
        assert_eq!(executor.block_on(Box::pin(std::future::pending())).unwrap_err().kind(), ErrorKind::Closed);
    });
}

/// The timer driver stops while foreign threads are in the middle of polling timers.
#[test]
fn polling_races_with_the_shutdown() {
    bounded(|| {
        for _ in 0..100 {
            let runtime = multi_thread();
            let executor = Tokio::new(runtime.handle().clone());
            let pollers: Vec<_> = (0..3)
                .map(|_| {
                    let executor = executor.clone();
                    thread::spawn(move || {
                        while !format!("{executor:?}").contains("true") {
                            let mut sleep = executor.sleep(ms(1));
                            while block_on(async { futures::poll!(&mut sleep) }).is_pending() {}
                        }
                    })
                })
                .collect();
            thread::yield_now();
            drop(runtime);
            pollers.into_iter().for_each(|poller| poller.join().expect("no panic while shutting down"));
        }
    });
}

/// Once the runtime shuts down sleeps end early. A loop around them must not keep its worker for ever.
#[test]
fn a_loop_of_sleeps_that_runs_during_the_shutdown_ends() {
    bounded(|| {
        let runtime = multi_thread();
        let executor = Tokio::new(runtime.handle().clone());
        let (running, runs) = mpsc::channel();
        let inside = executor.clone();
        executor.spawn(Box::pin(async move {
            running.send(()).unwrap();
            while !format!("{inside:?}").contains("true") {
                thread::yield_now();
            }
            loop {
                inside.sleep(ms(3_600_000)).await;
            }
        }));
        runs.recv().unwrap();
        drop(runtime);
    });
}

#[test]
fn a_sleep_outlives_the_last_executor() {
    bounded(|| {
        let runtime = multi_thread();
        let executor = Tokio::new(runtime.handle().clone());
        let before = executor.now();
        let sleep = executor.sleep(ms(50));
        drop(executor);
        block_on(sleep);
        assert!(Tokio::new(runtime.handle().clone()).now() - before >= ms(50));
    });
}

#[test]
fn dropping_the_executors_ends_the_sentinel() {
    bounded(|| {
        let runtime = multi_thread();
        let executor = Tokio::new(runtime.handle().clone());
        let other = executor.clone();
        assert_eq!(runtime.metrics().num_alive_tasks(), 1);
        drop(executor);
        assert_eq!(runtime.metrics().num_alive_tasks(), 1);
        drop(other);
        while runtime.metrics().num_alive_tasks() > 0 {
            thread::yield_now();
        }
    });
}

#[test]
fn current_needs_a_runtime() {
    let error = Tokio::current().unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::InvalidInput, "connect"));
}

#[tokio::test(start_paused = true)]
async fn a_paused_clock_is_seen_from_everywhere() {
    let executor = Tokio::current().unwrap();
    let before = executor.now();
    tokio::time::advance(Duration::from_secs(3600)).await;
    assert_eq!(executor.now() - before, Duration::from_secs(3600));
    let elsewhere = executor.clone();
    let seen = thread::spawn(move || elsewhere.now()).join().unwrap();
    assert_eq!(seen - before, Duration::from_secs(3600));
    executor.sleep(Duration::from_secs(60)).await;
    assert!(executor.now() - before >= Duration::from_secs(3660));
}
