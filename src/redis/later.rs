//! A connection whose server type is still unknown. A background task finds it out.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::backoff::Backoff;
use crate::backoff::pauses::RECONNECT;
use crate::config::Config;
use crate::connection::Connection;
use crate::connection::later::{Attempt, Later};
use crate::runtime::Executor;

/// Dropping it ends the task and closes the connection that the task has made.
pub(super) struct InBackground {
    later: Arc<Later>,
}

impl InBackground {
    pub(super) fn start(
        executor: &Arc<dyn Executor>,
        target: String,
        config: &Config,
        seed: u64,
        attempt: impl Fn() -> Attempt<()> + Send + 'static,
    ) -> Self {
        let later = Arc::new(Later::to(target, Arc::clone(executor), config.command_timeout));
        let making = Arc::clone(&later).make(Backoff::new(RECONNECT, seed), attempt);
        executor.spawn(Box::pin(async move {
            making.await;
        }));
        Self { later }
    }
}

impl Deref for InBackground {
    type Target = Later;

    fn deref(&self) -> &Later {
        &self.later
    }
}

impl Drop for InBackground {
    fn drop(&mut self) {
        self.later.close();
    }
}

impl fmt::Debug for InBackground {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.later.fmt(f)
    }
}

#[cfg(test)]
mod tests;
