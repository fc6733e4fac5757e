//! The executor on smol.

use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;

use super::{Executor, must_not_block};
use crate::error::Result;

/// Runs bowline on smol's global executor, which starts when it is first used and never shuts down.
#[derive(Clone, Copy, Debug, Default)]
pub struct Smol;

#[expect(clippy::disallowed_methods, reason = "this is the adapter")]
impl Executor for Smol {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        ::smol::spawn(task).detach();
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        ::smol::Timer::after(duration).map(drop).boxed()
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn block_on(&self, future: BoxFuture<'_, ()>) -> Result<()> {
        // There may be no other thread that drives the tasks that the future waits for. smol tells its threads from others
        // by nothing but their names.
        if std::thread::current().name().is_some_and(|name| name.starts_with("smol-")) {
            return Err(must_not_block("smol::unblock"));
        }
        ::smol::block_on(future);
        Ok(())
    }
}
