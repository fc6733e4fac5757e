//! The interfaces to holds that several servers grant together.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;

use crate::acquire::request::Request;
use crate::engine::lease::Hold;
use crate::error::Result;
use crate::inspect::HolderState;

/// Several servers that grant a hold together.
pub(crate) trait Quorum: fmt::Debug + Send + Sync {
    /// Why there is no majority for this name. `None`: there is one, as far as is known.
    fn lack(&self, name: &str) -> Option<String>;

    /// Acquires the hold. `None`: others hold it, and the request does not wait. The caller drops the future at
    /// `until`. Everything is then cleaned up in the background.
    fn acquire<'a>(
        self: Arc<Self>,
        request: &'a Request,
        until: Option<Instant>,
    ) -> BoxFuture<'a, Result<Option<QuorumGrant>>>;

    /// Reads who holds the name.
    fn holder<'a>(&'a self, operation: &'static str, name: &'a str) -> BoxFuture<'a, Result<Option<HolderState>>>;
}

/// A granted hold, with the interface that ends it. Its owner must call one of the releases of [`Ends`].
pub(crate) struct QuorumGrant {
    pub(crate) hold: Arc<Hold>,
    pub(crate) ends: Arc<dyn Ends>,
}

/// Changes and ends a hold that several servers have granted.
pub(crate) trait Ends: fmt::Debug + Send + Sync {
    /// Releases the hold, unless it is lost. If the future is dropped, the release goes on in the background. A
    /// future that is neither polled nor dropped releases nothing more.
    fn release(self: Arc<Self>) -> BoxFuture<'static, Result<()>>;

    /// Releases the hold in the background.
    fn release_later(&self);

    /// Prolongs a fixed lease.
    fn extend(&self, lease: Duration) -> BoxFuture<'_, Result<()>>;
}
