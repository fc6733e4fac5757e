//! Finds the address before each dial. A single server always has the same address. Behind sentinels, the right address
//! changes, so each dial asks again, and a connection to a server that has become the wrong one is closed. In a
//! cluster, each node has an address of its own.

use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, ready};

use super::super::failure::Failure;
use super::super::url::target::Target;
use super::deadline::Deadline;

/// Knows the server to which a connection must lead. It is displayed as the user has written it, without credentials.
pub(in crate::redis) trait Locate: fmt::Display + Send + Sync + 'static {
    /// The server to dial now.
    ///
    /// The caller limits the time. Dropping the future changes nothing.
    fn locate(&self) -> BoxFuture<'_, Result<Arc<Target>, Failure>>;

    /// Resolves when a connection to `target` must not be used any more, because another server is the right one.
    fn left<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, ()>;

    /// Resolves when [`locate`](Self::locate) would give another answer than at the time of this call.
    fn moved(&self) -> BoxFuture<'_, ()>;

    /// Like [`locate`](Self::locate), for the time after the runtime's end. Blocks the thread.
    fn locate_blocking(&self, deadline: Deadline) -> Option<Arc<Target>>;

    /// Whether another server may soon be the right one, so that a failed first connection is tried again.
    fn moves(&self) -> bool {
        false
    }

    /// Records that a call to the server has had no answer for a while, so another server may be the right one by now.
    /// Returns when to record it again, if ever.
    fn doubt(&self) -> Option<Duration> {
        None
    }

    /// Adds to a failed dial of `target`, or a failed login there, what the locator knows about it.
    fn explain(&self, target: &Target, failure: Failure) -> Failure {
        let _ = target;
        failure
    }
}

/// A single server with a fixed address.
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
