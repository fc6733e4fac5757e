//! Decides when a failed request is sent again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backoff::{Backoff, Pauses};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::protocol::dispatch::Failure;
use crate::runtime::Executor;

/// The pauses between requests to a server that gives no usable answer.
pub(crate) const PAUSES: Pauses = Pauses { shortest: Duration::from_millis(25), longest: Duration::from_secs(1) };

/// A series of requests for one operation.
#[derive(Debug)]
pub(crate) struct Retry<'a> {
    executor: &'a dyn Executor,
    engine: &'a Engine,
    operation: &'static str,
    name: Arc<str>,
    /// `None` until the first failure.
    backoff: Option<Backoff>,
    give_up: Instant,
}

impl<'a> Retry<'a> {
    pub(crate) fn new(
        executor: &'a dyn Executor,
        engine: &'a Engine,
        retry_timeout: Duration,
        operation: &'static str,
        name: &Arc<str>,
        began: Instant,
    ) -> Self {
        let give_up = began + retry_timeout;
        Self { executor, engine, operation, name: name.clone(), backoff: None, give_up }
    }

    /// Pauses before the next request, or fails: at once if a retry is of no use, else when the client's retry timeout,
    /// counted from the first request, is over.
    pub(crate) async fn again_after(&mut self, failure: Failure) -> Result<()> {
        let left = self.give_up.saturating_duration_since(self.executor.now());
        if left.is_zero() || !failure.kind().is_retryable() {
            return Err(self.error(failure));
        }
        let backoff = || Backoff::new(PAUSES, self.engine.jitter_seed());
        let pause: Duration = self.backoff.get_or_insert_with(backoff).pause().min(left);
        self.executor.sleep(pause).await;
        Ok(())
    }

    pub(crate) fn error(&self, failure: Failure) -> Error {
        failure.into_error(self.operation).with_name(&self.name)
    }
}
