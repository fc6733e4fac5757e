//! What the checks of the contract do not see: whose turn it is to drop a task, and when the threads end.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Barrier, Weak};
use std::task::{Poll, Waker};

use event_listener::Event;

use super::*;
use crate::runtime::yield_once;

/// A wait that would go on for ever should not.
const LONG: Duration = Duration::from_secs(120);

fn threads() -> Threads {
    Threads::new(1).unwrap()
}

/// Says so when it is dropped.
fn dropped(sender: &Sender<&'static str>) -> OnDrop<Sender<&'static str>> {
    OnDrop(sender.clone(), |sender| {
        let _ = sender.send("dropped");
    })
}

fn next(said: &Receiver<&'static str>) -> &'static str {
    said.recv_timeout(LONG).unwrap()
}

/// Waits until nothing has the pool any more: its threads have ended.
fn wait_until_gone(pool: &Weak<Pool>) {
    while pool.strong_count() > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn the_last_clone_ends_the_threads() {
    let threads = threads();
    let (pool, clone) = (Arc::downgrade(&threads.pool.0), threads.clone());
    drop(threads);
    assert!(!clone.pool.0.is_shut_down());
    // A sleep is not a clone.
    let sleep = clone.sleep(LONG);
    drop(clone);
    park::block_on(sleep);
    wait_until_gone(&pool);
}

#[test]
fn threads_that_wait_for_work_end() {
    for _ in 0..20 {
        let threads = Threads::new(0).unwrap();
        let pool = Arc::downgrade(&threads.pool.0);
        let (said, heard) = channel();
        threads.spawn(Box::pin(async move { said.send("polled").unwrap() }));
        assert_eq!(next(&heard), "polled", "there is a worker in any case");
        // By then, it most likely waits for the next task.
        park::block_on(threads.sleep(Duration::from_millis(2)));
        threads.shut_down();
        drop(threads);
        wait_until_gone(&pool);
    }
}

/// Shuts down while `wait` most likely waits on a thread of its own, and expects it to end.
fn ends_when_shut_down(wait: impl FnOnce(Threads) + Send + 'static) {
    let (threads, (said, heard)) = (threads(), channel());
    let clone = threads.clone();
    let waits = move || {
        said.send("begins").unwrap();
        wait(clone);
        said.send("ended").unwrap();
    };
    std::thread::Builder::new().spawn(waits).unwrap();
    assert_eq!(next(&heard), "begins");
    park::block_on(threads.sleep(Duration::from_millis(5)));
    threads.shut_down();
    assert_eq!(next(&heard), "ended");
}

#[test]
fn shutting_down_ends_a_sleep_that_is_waited_for() {
    ends_when_shut_down(|threads| park::block_on(threads.sleep(100 * LONG)));
}

#[test]
fn shutting_down_ends_a_thread_that_is_blocked() {
    ends_when_shut_down(|threads| {
        let blocked = threads.block_on(Box::pin(futures::future::pending()));
        assert_eq!(blocked.unwrap_err().kind(), ErrorKind::Closed);
    });
}

#[test]
fn sleeps_that_end_together_are_told_apart() {
    let (threads, now) = (threads(), clock::now());
    let timers = &threads.pool.0.timers;
    assert_ne!(timers.deadline(now), timers.deadline(now));
}

#[test]
fn a_task_may_have_the_last_clone() {
    let threads = threads();
    let pool = Arc::downgrade(&threads.pool.0);
    let clone = threads.clone();
    threads.spawn(Box::pin(async move {
        clone.sleep(Duration::from_millis(1)).await;
    }));
    drop(threads);
    wait_until_gone(&pool);
}

#[test]
fn shutting_down_drops_a_task_whose_waker_lives() {
    let (threads, (said, heard)) = (threads(), channel());
    let (waker, woken) = channel::<Waker>();
    let guard = dropped(&said);
    threads.spawn(Box::pin(async move {
        let _guard = guard;
        futures::future::poll_fn(|context| {
            waker.send(context.waker().clone()).unwrap();
            Poll::<()>::Pending
        })
        .await;
    }));
    let waker = woken.recv_timeout(LONG).unwrap();
    threads.shut_down();
    assert_eq!(next(&heard), "dropped");
    waker.wake();
    assert!(woken.recv().is_err(), "it was polled again");
}

/// An event holds its lock while it wakes those who wait, and whoever is dropped while it waits takes this lock.
#[test]
fn a_task_is_not_dropped_by_another_one_that_wakes_it() {
    // Which of the two ends first is up to chance.
    for _ in 0..50 {
        let (threads, event, (said, heard)) = (threads(), Arc::new(Event::new()), channel());
        for _ in 0..2 {
            let (waits, guard) = (Arc::clone(&event), dropped(&said));
            let tells = OnDrop(Arc::clone(&event), |event| {
                event.notify(usize::MAX);
            });
            threads.spawn(Box::pin(async move {
                let _tells = (tells, guard);
                waits.listen().await;
            }));
        }
        while event.total_listeners() < 2 {
            std::thread::yield_now();
        }
        let shutting_down = std::thread::Builder::new().spawn(move || threads.shut_down()).unwrap();
        assert_eq!([next(&heard), next(&heard)], ["dropped"; 2]);
        shutting_down.join().unwrap();
    }
}

#[test]
fn a_task_that_is_polled_is_dropped_after_the_poll() {
    let (threads, (said, heard)) = (threads(), channel());
    let (polled, go_on) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let guard = dropped(&said);
    let both = (Arc::clone(&polled), Arc::clone(&go_on));
    threads.spawn(Box::pin(async move {
        let _guard = guard;
        both.0.wait();
        both.1.wait();
        said.send("polled").unwrap();
        // Its waker was called, and it is not queued.
        yield_once().await;
        said.send("polled again").unwrap();
    }));
    polled.wait();
    threads.shut_down();
    go_on.wait();
    assert_eq!([next(&heard), next(&heard)], ["polled", "dropped"]);
    assert!(heard.recv().is_err());
}

#[test]
fn a_queued_task_is_dropped_without_a_poll() {
    let (threads, (said, heard)) = (threads(), channel());
    let (polled, go_on) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let both = (Arc::clone(&polled), Arc::clone(&go_on));
    threads.spawn(Box::pin(async move {
        both.0.wait();
        both.1.wait();
    }));
    polled.wait();
    let guard = dropped(&said);
    threads.spawn(Box::pin(async move {
        let _guard = guard;
        said.send("polled").unwrap();
    }));
    threads.shut_down();
    assert_eq!(next(&heard), "dropped");
    go_on.wait();
    assert!(heard.recv().is_err());
}

#[test]
fn a_task_without_a_waker_is_dropped() {
    let (threads, (said, heard)) = (threads(), channel());
    let guard = dropped(&said);
    threads.spawn(Box::pin(async move {
        let _guard = guard;
        futures::future::pending::<()>().await;
    }));
    assert_eq!(next(&heard), "dropped");
    while !threads.pool.0.is_empty() {
        std::thread::yield_now();
    }
}

#[test]
fn a_task_that_panics_is_dropped_and_its_thread_goes_on() {
    let (threads, (said, heard)) = (threads(), channel());
    let guard = dropped(&said);
    threads.spawn(Box::pin(async move {
        let _guard = guard;
        panic!("on purpose");
    }));
    assert_eq!(next(&heard), "dropped");
    threads.spawn(Box::pin(async move { said.send("polled").unwrap() }));
    assert_eq!(next(&heard), "polled");
}

#[test]
fn a_task_must_not_block() {
    let (threads, (said, heard)) = (threads(), channel());
    let clone = threads.clone();
    threads.spawn(Box::pin(async move {
        said.send(clone.block_on(Box::pin(async {}))).unwrap();
    }));
    let error = heard.recv_timeout(LONG).unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("a thread of the application"), "{error}");
}

#[test]
fn a_future_that_is_done_is_not_closed() {
    let threads = threads();
    threads.shut_down();
    threads.block_on(Box::pin(async {})).unwrap();
}

#[test]
fn sleeps_leave_nothing_behind() {
    let threads = threads();
    let timers = &threads.pool.0.timers;
    let mut sleep = threads.sleep(LONG);
    assert!(park::poll_once(&mut sleep).is_pending());
    assert!(park::poll_once(&mut sleep).is_pending());
    assert_eq!(timers.count(), 1);
    drop(sleep);
    park::block_on(threads.sleep(Duration::from_millis(1)));
    assert_eq!(timers.count(), 0);
}

#[test]
fn a_sleep_is_not_ready_in_its_first_poll() {
    let threads = threads();
    let mut none = threads.sleep(Duration::ZERO);
    assert!(park::poll_once(&mut none).is_pending());
    assert!(park::poll_once(&mut none).is_ready());
}

#[test]
fn many_tasks_run_on_several_threads() {
    let threads = Threads::new(3).unwrap();
    let (said, heard) = channel();
    for number in 0..200 {
        let (said, clone) = (said.clone(), threads.clone());
        threads.spawn(Box::pin(async move {
            for round in 0..5 {
                yield_once().await;
                clone.sleep(Duration::from_micros(number * round)).await;
            }
            said.send(number).unwrap();
        }));
    }
    drop(said);
    let mut numbers: Vec<u64> = heard.iter().collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..200).collect::<Vec<_>>());
}
