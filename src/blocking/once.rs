//! Work that runs once in a period.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::thread::block;
use crate::{Executor, OnceState, Result, Run};

/// Work of blocking code that runs at most once in each period. Guarantees are those of
/// [`bowline::Once`](crate::Once), but for one: blocking work is not stopped when its hold is lost. It should check
/// [`Run::is_valid`] before each step and after each pause.
#[derive(Clone, Debug)]
pub struct Once {
    inner: crate::Once,
    executor: Arc<dyn Executor>,
}

impl Once {
    pub(super) fn new(inner: crate::Once, executor: Arc<dyn Executor>) -> Self {
        Self { inner, executor }
    }

    /// See [`bowline::Once::at_least`](crate::Once::at_least).
    pub fn at_least(self, time: Duration) -> Self {
        Self { inner: self.inner.at_least(time), ..self }
    }

    /// Ends the hold after that time: see [`bowline::Once::at_most`](crate::Once::at_most).
    pub fn at_most(self, time: Duration) -> Self {
        Self { inner: self.inner.at_most(time), ..self }
    }

    /// See [`bowline::Once::retry_on_error`](crate::Once::retry_on_error).
    pub fn retry_on_error(self) -> Self {
        Self { inner: self.inner.retry_on_error(), ..self }
    }

    /// Calls `work`, unless a run of this period has begun or another run is under way: see
    /// [`bowline::Once::run`](crate::Once::run).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking). [`Lost`](crate::ErrorKind::Lost) is
    /// returned when the work is done.
    pub fn run<T>(&self, work: impl FnOnce(Run) -> T) -> Result<Option<T>> {
        self.begin_and_end(work, |_| true)
    }

    /// Calls `work` as [`run`](Self::run) does. If it returns an error, the run has failed: see
    /// [`bowline::Once::try_run`](crate::Once::try_run).
    ///
    /// # Errors
    /// Those of [`run`](Self::run). The error of the work is part of what is returned.
    pub fn try_run<T, E>(
        &self,
        work: impl FnOnce(Run) -> std::result::Result<T, E>,
    ) -> Result<Option<std::result::Result<T, E>>> {
        self.begin_and_end(work, std::result::Result::is_ok)
    }

    /// Reads what is known of the last run: see [`bowline::Once::inspect`](crate::Once::inspect).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn inspect(&self) -> Result<OnceState> {
        block(&self.executor, "inspect", Box::pin(self.inner.inspect()))
    }

    fn begin_and_end<T>(&self, work: impl FnOnce(Run) -> T, is_done: impl FnOnce(&T) -> bool) -> Result<Option<T>> {
        let Some(running) = block(&self.executor, "once", Box::pin(self.inner.begin()))? else { return Ok(None) };
        let run = running.run();
        let worked = catch_unwind(AssertUnwindSafe(|| work(run)));
        let is_done = worked.as_ref().is_ok_and(is_done);
        let ended = block(&self.executor, "once", Box::pin(running.end(is_done)));
        match worked {
            Ok(output) => ended.map(|()| Some(output)),
            Err(panic) => resume_unwind(panic),
        }
    }
}
