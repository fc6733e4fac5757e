//! Work that runs once in a period. What the work does is not async in either API.

use std::time::Duration;

use bowline::{OnceState, Result, Run, blocking};
use futures::future::BoxFuture;

use super::Either;
use super::thread::{call, on_a_thread};

#[derive(Clone, Debug)]
pub(crate) struct Once(pub(super) Either<bowline::Once, blocking::Once>);

/// The same setting of either API.
macro_rules! set {
    ($once:expr, $method:ident($($argument:expr)?)) => {
        Once(match $once.0 {
            Either::Async(it) => Either::Async(it.$method($($argument)?)),
            Either::Blocking(it) => Either::Blocking(it.$method($($argument)?)),
        })
    };
}

/// A run by `$method` of either API.
macro_rules! run {
    ($once:expr, $method:ident, $work:expr) => {
        match $once.0.clone() {
            Either::Async(it) => Box::pin(async move { it.$method(move |run| async move { $work(run) }).await }),
            Either::Blocking(it) => on_a_thread(move || it.$method($work)),
        }
    };
}

impl Once {
    pub(crate) fn at_least(self, time: Duration) -> Self {
        set!(self, at_least(time))
    }

    pub(crate) fn at_most(self, time: Duration) -> Self {
        set!(self, at_most(time))
    }

    pub(crate) fn retry_on_error(self) -> Self {
        set!(self, retry_on_error())
    }

    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(Run) -> T + Send + 'static,
    ) -> BoxFuture<'static, Result<Option<T>>> {
        run!(self, run, work)
    }

    pub(crate) fn try_run<T: Send + 'static, E: Send + 'static>(
        &self,
        work: impl FnOnce(Run) -> std::result::Result<T, E> + Send + 'static,
    ) -> BoxFuture<'static, Result<Option<std::result::Result<T, E>>>> {
        run!(self, try_run, work)
    }

    pub(crate) fn inspect(&self) -> BoxFuture<'static, Result<OnceState>> {
        call!(self.0, inspect)
    }
}
