//! The executors of this crate.

use bowline::Executor;
use bowline::testing::{check_executor, check_shut_down};
use futures::executor::block_on;

use super::not_checked;
use crate::support::bounded::bounded;

fn passes(executor: impl Executor) {
    let report = block_on(check_executor(executor).into_future()).unwrap();
    assert_eq!((report.kept().count(), not_checked(&report)), (12, Vec::new()));
}

#[cfg(feature = "smol")]
#[test]
fn smol() {
    bounded(|| passes(bowline::smol::Smol));
}

#[cfg(feature = "async-std")]
#[test]
fn async_std() {
    bounded(|| passes(bowline::async_std::AsyncStd));
}

#[cfg(feature = "threads")]
#[test]
fn threads() {
    use bowline::threads::Threads;

    bounded(|| {
        for workers in [1, 3] {
            let threads = Threads::new(workers).unwrap();
            passes(threads.clone());
            threads.shut_down();
            let report = block_on(check_shut_down(threads).into_future()).unwrap();
            assert_eq!((report.kept().count(), not_checked(&report)), (3, Vec::new()));
        }
    });
}

#[cfg(feature = "tokio")]
mod on_tokio {
    use bowline::tokio::Tokio;
    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn multi_thread() {
        bounded(|| {
            let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            passes(Tokio::new(runtime.handle().clone()));
        });
    }

    /// Awaited in the runtime, which is driven by that.
    #[test]
    fn current_thread() {
        bounded(|| {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            let executor = Tokio::new(runtime.handle().clone());
            let report = runtime.block_on(check_executor(executor).into_future()).unwrap();
            assert_eq!(report.kept().count(), 12);
        });
    }

    #[test]
    fn shut_down() {
        bounded(|| {
            for builder in [Builder::new_multi_thread, Builder::new_current_thread] {
                let runtime = builder().enable_all().build().unwrap();
                let executor = Tokio::new(runtime.handle().clone());
                drop(runtime);
                let report = block_on(check_shut_down(executor).into_future()).unwrap();
                assert_eq!((report.kept().count(), not_checked(&report)), (3, Vec::new()));
            }
        });
    }
}
