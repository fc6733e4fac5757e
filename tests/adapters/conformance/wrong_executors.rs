//! Executors that are wrong in one way each, and the clauses that their checks must name.

mod sleeps;

use std::cell::RefCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use bowline::smol::Smol;
use bowline::testing::{Clause, check_executor, check_shut_down};
use bowline::{BoxFuture, Executor};
use futures::channel::oneshot;
use futures::executor::block_on;
use futures::future::{FutureExt, select};

use self::sleeps::WrongSleep;
use super::failed;
use crate::support::bounded::bounded;

/// What is wrong with the executor.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    Sleep(WrongSleep),
    DropsTasks,
    /// A task ends with the thread that spawned it.
    TiesTasksToThreads,
    /// A task blocks the thread that spawns it.
    RunsTasksInPlace,
    GoesBack,
    /// `block_on` polls once.
    DoesNotBlock,
    /// One thread at a time.
    BlocksOneThread,
    /// Nothing is wrong, but the runtime cannot be shut down.
    CannotShutDown,
    /// The runtime is shut down, but a sleep ends in its first poll.
    SpinsAfterShutdown,
    /// The runtime is shut down, but `block_on` returns `Ok`.
    HidesTheShutdown,
}

#[derive(Debug)]
struct WrongExecutor {
    wrong: Wrong,
    reads: AtomicU64,
    blocked: Mutex<()>,
    sleep_dropped: std::sync::Arc<AtomicBool>,
}

thread_local! {
    /// Dropped at the end of the thread.
    static TIED: RefCell<Vec<oneshot::Sender<()>>> = const { RefCell::new(Vec::new()) };
}

impl Executor for WrongExecutor {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        match self.wrong {
            Wrong::DropsTasks | Wrong::SpinsAfterShutdown | Wrong::HidesTheShutdown => drop(task),
            Wrong::RunsTasksInPlace => ::smol::block_on(task),
            Wrong::TiesTasksToThreads => {
                let (tied, thread_ended) = oneshot::channel();
                TIED.with_borrow_mut(|all| all.push(tied));
                Smol.spawn(select(task, thread_ended).map(|_| ()).boxed());
            }
            _ => Smol.spawn(task),
        }
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        match self.wrong {
            Wrong::Sleep(wrong) => self.wrong_sleep(wrong, duration),
            Wrong::SpinsAfterShutdown => futures::future::ready(()).boxed(),
            Wrong::HidesTheShutdown => Smol.sleep(Duration::from_millis(1)),
            _ => Smol.sleep(duration),
        }
    }

    fn now(&self) -> Instant {
        let now = Smol.now();
        // Only one check reads the time so often.
        let is_behind = matches!(self.wrong, Wrong::GoesBack) && self.reads.fetch_add(1, SeqCst) % 500 == 499;
        if is_behind { now - Duration::from_millis(5) } else { now }
    }

    fn block_on(&self, future: BoxFuture<'_, ()>) -> bowline::Result<()> {
        match self.wrong {
            Wrong::DoesNotBlock => {
                let _ = future.now_or_never();
                Ok(())
            }
            Wrong::BlocksOneThread => {
                let _one = self.blocked.lock().unwrap();
                Smol.block_on(future)
            }
            Wrong::HidesTheShutdown => Ok(()),
            Wrong::SpinsAfterShutdown => {
                let runtime = tokio_that_is_shut_down();
                runtime.block_on(future)
            }
            _ => Smol.block_on(future),
        }
    }
}

/// For its error.
fn tokio_that_is_shut_down() -> bowline::tokio::Tokio {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    bowline::tokio::Tokio::new(runtime.handle().clone())
}

fn executor(wrong: Wrong) -> WrongExecutor {
    WrongExecutor { wrong, reads: AtomicU64::new(0), blocked: Mutex::new(()), sleep_dropped: Default::default() }
}

/// Waits that do not end are cut short.
const LIMIT: Duration = Duration::from_secs(5);

fn fails(wrong: Wrong, expected: &'static [Clause]) {
    bounded(move || {
        let check = check_executor(executor(wrong)).limit(LIMIT);
        assert_eq!(failed(block_on(check.into_future())), expected);
    });
}

fn fails_shut_down(wrong: Wrong, expected: &'static [Clause]) {
    bounded(move || {
        let check = check_shut_down(executor(wrong)).limit(LIMIT);
        assert_eq!(failed(block_on(check.into_future())), expected);
    });
}

macro_rules! rows {
    ($with:ident: $($test:ident: $wrong:expr => $($clause:ident)+;)+) => {
        $(#[test]
        fn $test() {
            $with($wrong, &[$(Clause::$clause),+]);
        })+
    };
}

rows! { fails:
    drops_tasks: Wrong::DropsTasks => Spawns TasksRunBeside TasksOutlive BlocksOn;
    runs_tasks_in_place: Wrong::RunsTasksInPlace => TasksRunBeside;
    ties_tasks_to_threads: Wrong::TiesTasksToThreads => Spawns TasksOutlive;
    ends_long_sleeps_early: Wrong::Sleep(WrongSleep::EndsEarly) => SleepsLongEnough;
    counts_from_the_first_poll: Wrong::Sleep(WrongSleep::CountsFromFirstPoll) => SleepCountsFromCall;
    delays_short_sleeps: Wrong::Sleep(WrongSleep::DelaysShortOnes) => SleepsSideBySide;
    ends_others_with_a_dropped_sleep: Wrong::Sleep(WrongSleep::EndsOthersWhenDropped) => DroppedSleeps;
    overflows: Wrong::Sleep(WrongSleep::Overflows) => HugeSleeps;
    wakes_the_first_thread: Wrong::Sleep(WrongSleep::WakesTheFirstThread) => SleepsMove;
    goes_back: Wrong::GoesBack => Monotonic;
    does_not_block: Wrong::DoesNotBlock => SleepsLongEnough BlocksOn;
    blocks_one_thread: Wrong::BlocksOneThread => BlocksManyThreads;
}

rows! { fails_shut_down:
    cannot_shut_down: Wrong::CannotShutDown => ShutDownDropsTasks;
    spins_after_shutdown: Wrong::SpinsAfterShutdown => ShutDownEndsSleeps;
    hides_the_shutdown: Wrong::HidesTheShutdown => ShutDownEndsBlockOn;
}
