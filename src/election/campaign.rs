//! The builder of a campaign.

use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use super::candidate::Candidate;
use super::leadership::Leadership;
use crate::acquire::builder::Acquire;
use crate::error::Result;
use crate::hold::guard::LockGuard;
use crate::runtime::Executor;

/// A campaign that waits until its candidate leads. It resolves to the [`Leadership`].
///
/// Returned by [`Election::campaign`](crate::Election::campaign). Nothing is sent before it is awaited.
///
/// # Errors
/// - Those of [`Acquire`](crate::Acquire): [`TimedOut`](crate::ErrorKind::TimedOut) after the
///   [`timeout`](Self::timeout), [`Closed`](crate::ErrorKind::Closed), and the errors of a server that does not answer
///   or refuses.
/// - [`InvalidInput`](crate::ErrorKind::InvalidInput): the name, the lease or the [label](crate::Election::label) is
///   invalid. Nothing was sent.
/// - [`Unsupported`](crate::ErrorKind::Unsupported): the election is one [over a
///   `RedLock`](crate::RedLock::election), and its label is not that of the clients. Nothing was sent.
/// - [`Lost`](crate::ErrorKind::Lost): the lease ended before the server had noted that the term has begun.
/// - [`Refused`](crate::ErrorKind::Refused): the server has no memory to note that. Nobody leads until it has.
///
/// # Cancel safety
/// Dropping the future leaves the queue, or resigns, in the background.
#[must_use = "a campaign does nothing unless awaited"]
pub struct Campaign {
    candidate: Candidate,
    acquire: Acquire<LockGuard>,
}

impl Campaign {
    pub(super) fn new(candidate: &Candidate) -> Self {
        let acquire = Acquire::new(&candidate.primitive, "campaign", 1).ignoring_holder();
        Self { acquire, candidate: candidate.clone() }
    }

    /// Limits the wait. By default it is unlimited. See [`Acquire::timeout`](crate::Acquire::timeout). A candidate that
    /// is granted the leadership then notes that its term has begun, which takes at most the client's
    /// [`retry_timeout`](crate::ConfigBuilder::retry_timeout).
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { acquire: self.acquire.timeout(timeout), ..self }
    }

    /// Sets the lease of the term, which the watchdog renews. It limits how long a leader that has crashed keeps others
    /// from leading. See [`Acquire::lease`](crate::Acquire::lease).
    pub fn lease(self, lease: Duration) -> Self {
        Self { acquire: self.acquire.lease(lease), ..self }
    }

    pub(crate) fn executor(&self) -> Result<Arc<dyn Executor>> {
        self.acquire.executor()
    }

    pub(super) async fn led(self, operation: &'static str) -> Result<Leadership> {
        self.candidate.check_label(operation)?;
        let guard = Box::pin(self.acquire.acquired()).await?;
        Leadership::begin(&self.candidate, guard, operation).await
    }
}

impl IntoFuture for Campaign {
    type Output = Result<Leadership>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.led("campaign"))
    }
}

impl fmt::Debug for Campaign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Campaign").field("candidate", &self.candidate).finish_non_exhaustive()
    }
}
