//! Where to dial, asked before every dial of every connection.
//!
//! One server has one address for ever. Behind sentinels, and in a cluster, the right address is a question with an answer
//! that changes: each dial asks anew, and a connection leaves a server that is known to be the wrong one.

use std::fmt;
use std::future::pending;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, ready};

use super::deadline::Deadline;
use super::failure::Failure;
use super::target::Target;

/// Knows which server a connection belongs to. Shown as what the user has asked for, without credentials.
pub(super) trait Locate: fmt::Display + Send + Sync + 'static {
    /// The server to dial now.
    ///
    /// Takes no longer than the caller waits; dropping the future changes nothing.
    fn locate(&self) -> BoxFuture<'_, Result<Arc<Target>, Failure>>;

    /// Resolves once a connection to `target` must not be used any more, because another server is the right one.
    fn left<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, ()>;

    /// Resolves once the answer to [`locate`](Self::locate) is another one than it was at the time of this call.
    fn moved(&self) -> BoxFuture<'_, ()>;

    /// As [`locate`](Self::locate), when there is no runtime any more: blocks the thread.
    fn locate_blocking(&self, deadline: Deadline) -> Option<Arc<Target>>;

    /// Whether another server may be the right one soon, so that a first connection that fails is tried again.
    fn moves(&self) -> bool {
        false
    }

    /// A dial of `target`, or the login there, has failed: what else the locator knows of that.
    fn explain(&self, target: &Target, failure: Failure) -> Failure {
        let _ = target;
        failure
    }
}

/// One server with one address.
impl Locate for Arc<Target> {
    fn locate(&self) -> BoxFuture<'_, Result<Arc<Target>, Failure>> {
        ready(Ok(Self::clone(self))).boxed()
    }

    fn left<'a>(&'a self, _target: &'a Target) -> BoxFuture<'a, ()> {
        pending().boxed()
    }

    fn moved(&self) -> BoxFuture<'_, ()> {
        pending().boxed()
    }

    fn locate_blocking(&self, _deadline: Deadline) -> Option<Arc<Target>> {
        Some(Self::clone(self))
    }
}
