//! What every executor promises, checked the same way for each of them.

use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::support::bounded::bounded;
use bowline::Executor;
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::{Either, select};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn spawns_from_any_thread(executor: &Arc<dyn Executor>) {
    let (sender, receiver) = mpsc::channel();
    let from_here = sender.clone();
    executor.spawn(async move { from_here.send(1).unwrap() }.boxed());
    let elsewhere = Arc::clone(executor);
    thread::spawn(move || {
        let inner = Arc::clone(&elsewhere);
        // A task that spawns another, after a sleep.
        let task = async move {
            inner.sleep(ms(1)).await;
            inner.spawn(async move { sender.send(2).unwrap() }.boxed());
        };
        elsewhere.spawn(task.boxed());
    })
    .join()
    .unwrap();
    let mut seen: Vec<i32> = receiver.iter().collect();
    seen.sort_unstable();
    assert_eq!(seen, [1, 2]);
}

fn sleeps_at_least_as_long_as_asked(executor: &Arc<dyn Executor>) {
    for duration in [Duration::ZERO, Duration::from_nanos(1), ms(1), ms(30)] {
        // Once outside the runtime's threads, and once inside.
        let before = executor.now();
        block_on(executor.sleep(duration));
        assert!(executor.now() - before >= duration, "{duration:?}");
        let before = executor.now();
        executor.block_on(executor.sleep(duration)).unwrap();
        assert!(executor.now() - before >= duration, "{duration:?}");
    }
}

fn sleep_counts_from_the_call(executor: &Arc<dyn Executor>) {
    let early = executor.sleep(ms(600));
    block_on(executor.sleep(ms(600)));
    assert!(matches!(block_on(select(early, executor.sleep(ms(500)))), Either::Left(_)));
}

fn huge_sleeps_neither_overflow_nor_end(executor: &Arc<dyn Executor>) {
    for huge in [Duration::MAX, Duration::from_secs(u64::MAX), Duration::from_secs(1 << 40)] {
        let both = select(executor.sleep(huge), executor.sleep(ms(5)));
        assert!(matches!(block_on(both), Either::Right(_)), "{huge:?}");
    }
}

fn sleeps_can_be_dropped_and_moved_between_threads(executor: &Arc<dyn Executor>) {
    drop(executor.sleep(ms(1)));
    let mut sleep = executor.sleep(ms(20));
    let polled_here = block_on(async { futures::poll!(&mut sleep) });
    assert!(polled_here.is_pending());
    thread::spawn(move || block_on(sleep)).join().unwrap();
}

fn block_on_runs_borrowed_futures(executor: &Arc<dyn Executor>) {
    let mut count = 0;
    executor
        .block_on(
            async {
                executor.sleep(ms(1)).await;
                count += 1;
            }
            .boxed(),
        )
        .unwrap();
    let others: Vec<_> = (0..4)
        .map(|_| {
            let executor = Arc::clone(executor);
            thread::spawn(move || executor.block_on(executor.sleep(ms(5))).unwrap())
        })
        .collect();
    others.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(count, 1);
}

fn time_never_goes_back(executor: &Arc<dyn Executor>) {
    let mut last = executor.now();
    for _ in 0..1000 {
        let now = executor.now();
        assert!(now >= last);
        last = now;
    }
}

macro_rules! contract {
    ($with:expr) => {
        contract!($with,
            spawns_from_any_thread sleeps_at_least_as_long_as_asked sleep_counts_from_the_call
            huge_sleeps_neither_overflow_nor_end sleeps_can_be_dropped_and_moved_between_threads
            block_on_runs_borrowed_futures time_never_goes_back);
    };
    ($with:expr, $($test:ident)+) => {
        $(#[test]
        fn $test() {
            super::bounded(|| $with(&super::$test));
        })+
    };
}

#[cfg(feature = "smol")]
mod smol {
    use std::sync::Arc;

    use bowline::Executor;

    fn with(test: &dyn Fn(&Arc<dyn Executor>)) {
        test(&(Arc::new(bowline::smol::Smol) as Arc<dyn Executor>));
    }

    contract!(with);
}

#[cfg(feature = "async-std")]
mod async_std {
    use std::sync::Arc;

    use bowline::Executor;

    fn with(test: &dyn Fn(&Arc<dyn Executor>)) {
        test(&(Arc::new(bowline::async_std::AsyncStd) as Arc<dyn Executor>));
    }

    contract!(with);
}

#[cfg(feature = "tokio")]
mod tokio_multi_thread {
    use std::sync::Arc;

    use bowline::Executor;

    fn with(test: &dyn Fn(&Arc<dyn Executor>)) {
        let runtime = super::tokio_alone::multi_thread();
        test(&(Arc::new(bowline::tokio::Tokio::new(runtime.handle().clone())) as Arc<dyn Executor>));
    }

    contract!(with);
}

#[cfg(feature = "tokio")]
mod tokio_current_thread {
    use std::sync::Arc;

    use bowline::Executor;

    fn with(test: &dyn Fn(&Arc<dyn Executor>)) {
        let runtime = super::tokio_alone::Driven::start();
        test(&(Arc::new(bowline::tokio::Tokio::new(runtime.handle.clone())) as Arc<dyn Executor>));
    }

    contract!(with);
}

#[cfg(feature = "tokio")]
mod tokio_alone;
