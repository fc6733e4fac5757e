//! The check of executors.

use std::fmt;
use std::future::IntoFuture;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use futures::channel::oneshot;
use futures::future::BoxFuture;

use self::threads::on_a_thread;
use super::clause::Clause;
use super::report::{Checked, Report, failed, not_checked, panicked};
use crate::runtime::Executor;

mod blocking;
mod clock;
mod shut_down;
mod sleeps;
mod tasks;
mod threads;

type Check = fn(&Arc<dyn Executor>) -> Checked;

const RUNNING: [(Clause, Check); 12] = [
    (Clause::Spawns, tasks::spawns),
    (Clause::TasksRunBeside, tasks::run_beside),
    (Clause::TasksOutlive, tasks::outlive),
    (Clause::SleepsLongEnough, sleeps::long_enough),
    (Clause::SleepCountsFromCall, sleeps::counts_from_call),
    (Clause::SleepsSideBySide, sleeps::side_by_side),
    (Clause::DroppedSleeps, sleeps::dropped),
    (Clause::HugeSleeps, sleeps::huge),
    (Clause::SleepsMove, sleeps::moves),
    (Clause::Monotonic, clock::monotonic),
    (Clause::BlocksOn, blocking::runs_to_the_end),
    (Clause::BlocksManyThreads, blocking::many_threads),
];

const SHUT_DOWN: [(Clause, Check); 3] = [
    (Clause::ShutDownDropsTasks, shut_down::drops_tasks),
    (Clause::ShutDownEndsSleeps, shut_down::ends_sleeps),
    (Clause::ShutDownEndsBlockOn, shut_down::ends_block_on),
];

/// Checks the contract of [`Executor`]. It takes about two seconds, most of which are sleeps of the executor.
///
/// The methods of the executor are called on threads of their own. The runtime must go on meanwhile: await the check in
/// the runtime, or drive the runtime on another thread.
///
/// The clauses about a runtime that was shut down are those of [`check_shut_down`].
///
/// # Errors
/// The report, if a clause failed. It does not fail because of a clause that was not checked.
///
/// # Cancel safety
/// If the future is dropped, the check goes on in the background to its end.
///
/// ```
/// # #[cfg(feature = "smol")]
/// # fn main() -> Result<(), bowline::testing::Report> {
/// use bowline::testing::check_executor;
///
/// let report = smol::block_on(check_executor(bowline::smol::Smol).into_future())?;
/// println!("{report}");
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "smol"))]
/// # fn main() {}
/// ```
pub fn check_executor(executor: impl Executor) -> CheckExecutor {
    CheckExecutor { executor: Arc::new(executor), checks: &RUNNING, limit: Duration::from_secs(30) }
}

/// Checks what the contract of [`Executor`] says about a runtime that was shut down. To be called after the runtime
/// was, and to be awaited in another one.
///
/// # Errors
/// The report, if a clause failed.
pub fn check_shut_down(executor: impl Executor) -> CheckExecutor {
    CheckExecutor { executor: Arc::new(executor), checks: &SHUT_DOWN, limit: Duration::from_secs(30) }
}

/// A check of an executor that starts when it is awaited. Made by [`check_executor`] and [`check_shut_down`].
#[must_use = "nothing is checked before this is awaited"]
pub struct CheckExecutor {
    executor: Arc<dyn Executor>,
    checks: &'static [(Clause, Check)],
    limit: Duration,
}

impl CheckExecutor {
    /// The longest wait for one clause, after which the clause has failed and the rest is not checked. The default is
    /// 30 s.
    pub fn limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    fn run(&self) -> Report {
        let mut report = Report::new("bowline::Executor");
        let mut hung = None;
        for (clause, check) in self.checks {
            let checked = match hung {
                Some(hung) => Err(not_checked(format!("the check of {hung:?} did not end"))),
                None => self.in_time(*check).unwrap_or_else(|| {
                    hung = Some(*clause);
                    Err(failed(format!("the check did not end within {:?}", self.limit)))
                }),
            };
            report.add(*clause, checked);
        }
        report
    }

    /// `None`: the check did not end in time. Its thread is left behind.
    fn in_time(&self, check: Check) -> Option<Checked> {
        let (done, ended) = mpsc::channel();
        let executor = Arc::clone(&self.executor);
        let _ = on_a_thread(move || {
            let checked = catch_unwind(AssertUnwindSafe(|| check(&executor)));
            let _ = done.send(checked.unwrap_or_else(|panic| Err(panicked(&*panic))));
        });
        ended.recv_timeout(self.limit).ok()
    }
}

impl IntoFuture for CheckExecutor {
    type Output = Result<Report, Report>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let (done, ended) = oneshot::channel();
            let _ = on_a_thread(move || {
                let _ = done.send(self.run());
            });
            // The thread catches the panics of checks. It sends nothing only if the system gives the checks no threads.
            ended.await.unwrap_or_else(|_| without_threads()).into_result()
        })
    }
}

fn without_threads() -> Report {
    let mut report = Report::new("bowline::Executor");
    report.add(Clause::Spawns, Err(failed("the checks could not start a thread, so no clause was checked")));
    report
}

impl fmt::Debug for CheckExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckExecutor").field("executor", &self.executor).finish_non_exhaustive()
    }
}
