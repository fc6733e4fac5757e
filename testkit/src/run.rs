//! Runs a test on a runtime, and fails if it does not end.

use std::fs::File;
use std::future::Future;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use bowline::Executor;
use futures::future::LocalBoxFuture;

use super::deployment::Deployment;
use super::env::Env;
use super::server::Server;

/// No test may take longer.
const TEST_DEADLINE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    #[cfg(feature = "tokio")]
    TokioMulti,
    #[cfg(feature = "tokio")]
    TokioCurrent,
    #[cfg(feature = "smol")]
    Smol,
    #[cfg(feature = "async-std")]
    AsyncStd,
}

/// Every test holds it shared. A test that runs alone holds it exclusively.
static BESIDE: RwLock<()> = RwLock::new(());

/// A test of any type: all that runs tests is compiled once, and not for each test and each way to run it.
type Test = Box<dyn FnOnce(Env) -> LocalBoxFuture<'static, ()> + Send>;

/// Makes the environment of a test.
type Make = fn(Runtime, Arc<dyn Executor>) -> Env;

fn of_any_type<F, Fut>(test: F) -> Test
where
    F: FnOnce(Env) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + 'static,
{
    Box::new(move |env| Box::pin(test(env)))
}

/// Runs `test`, and fails if it does not end, or leaves something behind. `E` is the environment, or made of it.
pub fn run<E, F, Fut>(runtime: Runtime, test: F)
where
    E: From<Env>,
    F: FnOnce(E) -> Fut + Copy + Send + 'static,
    Fut: Future<Output = ()> + 'static,
{
    in_peace(&|| drive_once(runtime, Env::new, of_any_type(move |env: Env| test(env.into()))));
}

/// As [`run`], on the embedded server.
pub fn run_embedded<E, F, Fut>(runtime: Runtime, test: F)
where
    E: From<Env>,
    F: FnOnce(E) -> Fut + Copy + Send + 'static,
    Fut: Future<Output = ()> + 'static,
{
    in_peace(&|| drive_once(runtime, Env::new_embedded, of_any_type(move |env: Env| test(env.into()))));
}

/// How often tests of a binary have failed. If they fail often, the machine is not the reason.
static FAILED: Mutex<Failed> = Mutex::new(Failed { moments: 0, last: None });
const MOST_MOMENTS: u32 = 3;

/// Tests that fail within this time of each other have one cause: the machine stood still for all of them.
const MOMENT: Duration = Duration::from_secs(2);

struct Failed {
    /// Failures count once for each moment.
    moments: u32,
    last: Option<Instant>,
}

impl Failed {
    /// Counts a failure. Returns whether it is the first of its moment, too.
    fn count(&mut self, now: Instant) -> (u32, bool) {
        let is_first = self.last.is_none_or(|last| now.duration_since(last) > MOMENT);
        if is_first {
            self.moments += 1;
            self.last = Some(now);
        }
        (self.moments, is_first)
    }
}

/// Leases run by the clock, and a machine can be too busy for those of a test: one that fails runs once more with no
/// other beside it, and says so. `BOWLINE_ONCE=1` is for those who hunt races.
fn in_peace(test: &dyn Fn()) {
    let beside = BESIDE.read().unwrap_or_else(PoisonError::into_inner);
    let Err(panic) = catch_unwind(AssertUnwindSafe(test)) else { return };
    drop(beside);
    let (moments, is_first) = FAILED.lock().unwrap_or_else(PoisonError::into_inner).count(Instant::now());
    if std::env::var_os("BOWLINE_ONCE").is_some() || moments > MOST_MOMENTS {
        resume_unwind(panic);
    }
    let _alone = BESIDE.write().unwrap_or_else(PoisonError::into_inner);
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    // Not printed by `eprintln!`, because the harness hides the output of a test that passes in the end.
    let name = thread::current().name().unwrap_or("a test").to_owned();
    let text = text.unwrap_or("?");
    let told =
        format!("\n{name} failed beside others, and runs once more alone (moment {moments} of {MOST_MOMENTS}): {text}");
    let _ = writeln!(io::stderr(), "{told}");
    test();
    count(&name, text, is_first);
}

/// The message of tests that fail on purpose, which is no race.
pub const ON_PURPOSE: &str = "on purpose";

/// The test passed alone. A race that shows once in five must not pass unseen: `scripts/test` has a file for all
/// suites, lists what is in it, and fails if that is too much. The line of a failure that counts begins with an
/// asterisk.
fn count(name: &str, text: &str, counts: bool) {
    if text == ON_PURPOSE {
        return;
    }
    let Some(file) = std::env::var_os("BOWLINE_RETRIED") else { return };
    let suite = std::env::args().next().unwrap_or_default();
    let suite = suite.rsplit('/').next().unwrap_or_default().to_owned();
    let mark = if counts { '*' } else { ' ' };
    let line = format!("{mark} {suite}: {name}: {}\n", text.lines().next().unwrap_or_default());
    // In one write, because other suites may write to the file at the same time.
    let written =
        File::options().create(true).append(true).open(&file).and_then(|mut file| file.write_all(line.as_bytes()));
    written.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}

/// Runs `test` on a thread of its own.
pub fn run_once<F, Fut>(runtime: Runtime, make: Make, test: F)
where
    F: FnOnce(Env) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + 'static,
{
    drive_once(runtime, make, of_any_type(test));
}

fn drive_once(runtime: Runtime, make: Make, test: Test) {
    let (started, env) = mpsc::channel();
    let (done, ended) = mpsc::channel();
    let thread = thread::spawn(move || {
        let ended = catch_unwind(AssertUnwindSafe(|| {
            runtime.drive(move |executor| {
                Box::pin(async move {
                    let env = make(runtime, executor);
                    let _ = started.send(env.clone());
                    test(env.clone()).await;
                    env.nothing_is_left().await;
                })
            });
        }));
        let _ = done.send(());
        ended
    });
    let outcome = ended.recv_timeout(TEST_DEADLINE);
    // Taken out here, because the tasks of a global executor are never dropped and may hold the environment.
    let env: Option<Env> = env.try_recv().ok();
    let (server, deployment) = env.map(|env| (env.take_server(), env.take_deployment())).unwrap_or_default();
    match outcome {
        Err(RecvTimeoutError::Timeout) => {
            drop(catch_unwind(AssertUnwindSafe(|| drop((server, deployment)))));
            panic!("the test did not end within {TEST_DEADLINE:?}");
        }
        Ok(()) | Err(RecvTimeoutError::Disconnected) => match thread.join().and_then(|ended| ended) {
            Ok(()) => {
                server.into_iter().for_each(Server::finish);
                deployment.into_iter().for_each(Deployment::hand_on);
            }
            Err(panic) => {
                drop(catch_unwind(AssertUnwindSafe(|| drop((server, deployment)))));
                resume_unwind(panic);
            }
        },
    }
}

impl Runtime {
    /// Runs `body` to its end on a new runtime (smol and async-std have one for the whole process).
    fn drive(self, body: impl FnOnce(Arc<dyn Executor>) -> LocalBoxFuture<'static, ()>) {
        match self {
            #[cfg(feature = "tokio")]
            Self::TokioMulti | Self::TokioCurrent => {
                let mut builder = if self == Self::TokioMulti {
                    tokio::runtime::Builder::new_multi_thread()
                } else {
                    tokio::runtime::Builder::new_current_thread()
                };
                let runtime = builder.worker_threads(2).enable_all().build().unwrap();
                let executor = Arc::new(bowline::tokio::Tokio::new(runtime.handle().clone()));
                runtime.block_on(body(executor));
            }
            #[cfg(feature = "smol")]
            Self::Smol => smol::block_on(body(Arc::new(bowline::smol::Smol))),
            #[cfg(feature = "async-std")]
            Self::AsyncStd => async_std::task::block_on(body(Arc::new(bowline::async_std::AsyncStd))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_the_same_moment_count_once() {
        let (mut failed, start) = (Failed { moments: 0, last: None }, Instant::now());
        let seconds = [0.0, 1.0, 2.0, 2.5, 4.0, 9.0];
        let counted = seconds.map(|seconds| failed.count(start + Duration::from_secs_f64(seconds)));
        assert_eq!(counted, [(1, true), (1, false), (1, false), (2, true), (2, false), (3, true)]);
    }
}
