use std::sync::Arc;
use std::task::Context;

use futures::channel::oneshot;
use futures::future::BoxFuture;
use futures::poll;

use super::*;
use crate::runtime::an_instant;
use crate::wakers::woken::Woken;

const LIMIT: Duration = Duration::from_secs(10);
const SECOND: Duration = Duration::from_secs(1);

/// A clock that the test moves.
#[derive(Debug)]
struct Clock {
    now: Arc<Mutex<Instant>>,
    timers: Mutex<usize>,
    is_shut_down: Arc<Mutex<bool>>,
}

impl Clock {
    fn new() -> Self {
        Self { now: Arc::new(Mutex::new(an_instant())), timers: Mutex::default(), is_shut_down: Arc::default() }
    }

    fn pass(&self, time: Duration) {
        *lock(&self.now) += time;
    }

    fn timers(&self) -> usize {
        *lock(&self.timers)
    }
}

impl Executor for Clock {
    fn spawn(&self, _: BoxFuture<'static, ()>) {
        unreachable!("no call spawns")
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        *lock(&self.timers) += 1;
        let (now, until, is_shut_down) = (self.now.clone(), self.now() + duration, self.is_shut_down.clone());
        // The test polls this future itself.
        Box::pin(poll_fn(
            move |_: &mut Context<'_>| {
                if *lock(&now) >= until || *lock(&is_shut_down) { Poll::Ready(()) } else { Poll::Pending }
            },
        ))
    }

    fn now(&self) -> Instant {
        *lock(&self.now)
    }

    fn block_on(&self, _: BoxFuture<'_, ()>) -> crate::error::Result<()> {
        unreachable!("no call blocks")
    }
}

/// Runs the test with the calls of a connection and the task that keeps their time, which is polled by hand.
macro_rules! with_calls {
    ($calls:ident, $clock:ident, $time:ident, $test:block) => {{
        let ($calls, $clock) = (UnderWay::new(LIMIT), Clock::new());
        futures::executor::block_on(async {
            let mut $time = pin!($calls.keep_time(&$clock));
            assert!(poll!(&mut $time).is_pending());
            $test
        });
        assert!(lock(&$calls.calls).queue.is_empty(), "every call is forgotten");
    }};
}

#[test]
fn calls_one_after_the_other_share_a_timer() {
    with_calls!(calls, clock, time, {
        for n in 0..50 {
            let (answer, answered) = oneshot::channel();
            let mut call = pin!(calls.within(clock.now(), answered));
            assert!(poll!(&mut call).is_pending());
            assert!(poll!(&mut time).is_pending());
            answer.send(n).unwrap();
            assert_eq!(poll!(&mut call), Poll::Ready(Some(Ok(n))));
            clock.pass(SECOND);
            assert!(poll!(&mut time).is_pending());
        }
        assert!((4..=6).contains(&clock.timers()), "one in ten seconds, not {}", clock.timers());
        clock.pass(LIMIT);
        assert!(poll!(&mut time).is_pending());
        assert!(!lock(&calls.calls).is_timed, "and none without calls");
    });
}

#[test]
fn each_call_ends_when_its_own_time_has_passed() {
    with_calls!(calls, clock, time, {
        let mut first = pin!(calls.within(clock.now(), std::future::pending::<()>()));
        assert!(poll!(&mut first).is_pending());
        clock.pass(4 * SECOND);
        let mut second = pin!(calls.within(clock.now(), std::future::pending::<()>()));
        assert!(poll!(&mut second).is_pending());
        assert!(poll!(&mut time).is_pending());
        clock.pass(6 * SECOND);
        assert!(poll!(&mut first).is_pending(), "the timer has not fired");
        assert!(poll!(&mut time).is_pending());
        assert!(poll!(&mut second).is_pending());
        assert_eq!(poll!(&mut first), Poll::Ready(None));
        clock.pass(4 * SECOND);
        assert!(poll!(&mut time).is_pending());
        assert_eq!(poll!(&mut second), Poll::Ready(None));
        assert!(poll!(&mut time).is_pending());
    });
}

#[test]
fn an_answer_counts_although_it_is_late() {
    with_calls!(calls, clock, time, {
        let (answer, answered) = oneshot::channel();
        let mut call = pin!(calls.within(clock.now(), answered));
        assert!(poll!(&mut call).is_pending());
        assert!(poll!(&mut time).is_pending());
        clock.pass(LIMIT);
        assert!(poll!(&mut time).is_pending());
        let timers = clock.timers();
        assert!(poll!(&mut time).is_pending());
        assert_eq!(clock.timers(), timers, "no timer for a call that is late");
        answer.send(1).unwrap();
        assert_eq!(poll!(&mut call), Poll::Ready(Some(Ok(1))));
    });
}

#[test]
fn dropped_calls_are_forgotten_in_any_order() {
    with_calls!(calls, clock, time, {
        let begin = || Box::pin(calls.within(clock.now(), std::future::pending::<()>()));
        let mut begun = [begin(), begin(), begin()];
        for call in &mut begun {
            assert!(poll!(call).is_pending());
        }
        let [first, second, mut third] = begun;
        drop(second);
        assert_eq!(lock(&calls.calls).queue.len(), 3, "an older one is under way");
        drop(first);
        assert_eq!(lock(&calls.calls).queue.len(), 1);
        assert!(poll!(&mut time).is_pending());
        clock.pass(LIMIT);
        assert!(poll!(&mut time).is_pending());
        assert_eq!(poll!(&mut third), Poll::Ready(None));
    });
}

#[test]
fn the_end_of_the_runtime_ends_every_call() {
    with_calls!(calls, clock, time, {
        let mut call = pin!(calls.within(clock.now(), std::future::pending::<()>()));
        assert!(poll!(&mut call).is_pending());
        assert!(poll!(&mut time).is_pending());
        *lock(&clock.is_shut_down) = true;
        assert!(poll!(&mut time).is_ready());
        assert_eq!(poll!(&mut call), Poll::Ready(None));
    });
}

/// A call may be polled by another task than the one that began it, as when `select` hands it on.
#[test]
fn the_task_that_polled_a_call_last_is_woken_when_its_time_has_passed() {
    with_calls!(calls, clock, time, {
        let mut call = pin!(calls.within(clock.now(), std::future::pending::<()>()));
        let tasks = [(); 3].map(|()| Arc::new(Woken::default()));
        for task in &tasks {
            let waker = task.waker();
            assert!(call.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        }
        assert!(poll!(&mut time).is_pending());
        clock.pass(LIMIT);
        assert!(poll!(&mut time).is_pending());
        assert_eq!(tasks.map(|task| task.count()), [0, 0, 1]);
        assert_eq!(poll!(&mut call), Poll::Ready(None));
    });
}

/// Its entry goes with its time limit, and the entries of the calls behind it with their ends.
#[test]
fn a_call_that_is_not_polled_any_more_keeps_no_others() {
    with_calls!(calls, clock, time, {
        let mut kept = pin!(calls.within(clock.now(), std::future::pending::<()>()));
        assert!(poll!(&mut kept).is_pending());
        assert!(poll!(&mut time).is_pending());
        for _ in 0..100 {
            let mut call = pin!(calls.within(clock.now(), std::future::pending::<()>()));
            assert!(poll!(&mut call).is_pending());
            clock.pass(SECOND);
            assert!(poll!(&mut time).is_pending());
        }
        let left = lock(&calls.calls).queue.len();
        assert!(left <= 10, "as many as began within the time limit at most, not {left}");
        assert_eq!(poll!(&mut kept), Poll::Ready(None));
    });
}
