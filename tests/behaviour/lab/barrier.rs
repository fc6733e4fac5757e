//! The barrier.

use std::future::IntoFuture;
use std::time::Duration;

use bowline::{BarrierPass, BarrierState, Result, blocking};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::Either;
use super::thread::on_a_thread;

#[derive(Clone, Debug)]
pub(crate) struct Barrier(pub(super) Either<bowline::Barrier, blocking::Barrier>);

impl Barrier {
    pub(crate) fn wait(&self) -> Wait {
        Wait { barrier: self.0.clone(), timeout: None }
    }

    pub(crate) fn inspect(&self) -> BoxFuture<'static, Result<BarrierState>> {
        match self.0.clone() {
            Either::Async(barrier) => async move { barrier.inspect().await }.boxed(),
            Either::Blocking(barrier) => on_a_thread(move || barrier.inspect()),
        }
    }

    pub(crate) fn reset(&self) -> BoxFuture<'static, Result<bool>> {
        match self.0.clone() {
            Either::Async(barrier) => async move { barrier.reset().await }.boxed(),
            Either::Blocking(barrier) => on_a_thread(move || barrier.reset()),
        }
    }
}

pub(crate) struct Wait {
    barrier: Either<bowline::Barrier, blocking::Barrier>,
    timeout: Option<Duration>,
}

impl Wait {
    pub(crate) fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }
}

impl IntoFuture for Wait {
    type Output = Result<BarrierPass>;
    type IntoFuture = BoxFuture<'static, Result<BarrierPass>>;

    fn into_future(self) -> Self::IntoFuture {
        let timeout = self.timeout;
        match self.barrier {
            Either::Async(barrier) => {
                let wait = barrier.wait();
                if let Some(timeout) = timeout { wait.timeout(timeout) } else { wait }.into_future().boxed()
            }
            Either::Blocking(barrier) => on_a_thread(move || {
                let wait = barrier.wait();
                if let Some(timeout) = timeout { wait.timeout(timeout) } else { wait }.block()
            }),
        }
    }
}
