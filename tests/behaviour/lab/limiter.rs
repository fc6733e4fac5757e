//! The rate limiter.

use std::time::Duration;

use bowline::{Decision, Result, UntilReady, blocking};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::Either;
use super::thread::{call, either, on_a_thread};

#[derive(Clone, Debug)]
pub(crate) struct RateLimiter(pub(super) Either<bowline::RateLimiter, blocking::RateLimiter>);

impl RateLimiter {
    pub(crate) fn check(&self) -> BoxFuture<'static, Result<Decision>> {
        call!(self.0, check)
    }

    pub(crate) fn check_n(&self, cost: u32) -> BoxFuture<'static, Result<Decision>> {
        call!(self.0, check_n, cost)
    }

    pub(crate) fn inspect(&self) -> BoxFuture<'static, Result<Decision>> {
        call!(self.0, inspect)
    }

    pub(crate) fn reset(&self) -> BoxFuture<'static, Result<bool>> {
        call!(self.0, reset)
    }

    pub(crate) fn until_ready(&self) -> BoxFuture<'static, Result<()>> {
        self.wait(either!(&self.0, it => it.until_ready()))
    }

    /// With a timeout.
    pub(crate) fn ready_within(&self, cost: u32, timeout: Duration) -> BoxFuture<'static, Result<()>> {
        self.wait(either!(&self.0, it => it.until_ready_n(cost)).timeout(timeout))
    }

    fn wait(&self, wait: UntilReady) -> BoxFuture<'static, Result<()>> {
        match self.0 {
            Either::Async(_) => wait.into_future().boxed(),
            Either::Blocking(_) => on_a_thread(move || wait.block()),
        }
    }
}
