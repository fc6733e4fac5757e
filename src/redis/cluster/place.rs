//! The place where a node is dialled, which is always the same address.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, pending, ready};

use super::super::dial::deadline::Deadline;
use super::super::dial::locate::Locate;
use super::super::failure::Failure;
use super::super::url::address::Address;
use super::super::url::target::{Access, Target};
use super::host::Host;
use super::signals::Signals;
use crate::tuning::SLOW_NODE;

/// The address of a node, with the login. It never moves: the router closes the link when the node must no longer be
/// used.
pub(super) struct Place {
    host: Host,
    /// `None`: a certificate cannot contain this name.
    target: Option<Arc<Target>>,
    /// Of the client that keeps a link here.
    signals: Option<Arc<Signals>>,
}

impl Place {
    pub(super) fn new(access: &Access, host: Host) -> Self {
        let target = access.at(Address::Tcp(host.name.to_string(), host.port)).ok().map(Arc::new);
        Self { host, target, signals: None }
    }

    /// While the node is slow, the client reads the map.
    pub(super) fn with_map(self, signals: Arc<Signals>) -> Self {
        Self { signals: Some(signals), ..self }
    }

    pub(super) fn target(&self) -> Result<Arc<Target>, Failure> {
        let unnamed = || Failure::Unsupported("not a host name that TLS can verify".to_owned());
        self.target.clone().ok_or_else(unnamed)
    }
}

impl Locate for Place {
    fn locate(&self) -> BoxFuture<'_, Result<Arc<Target>, Failure>> {
        ready(self.target()).boxed()
    }

    fn left<'a>(&'a self, _target: &'a Target) -> BoxFuture<'a, ()> {
        pending().boxed()
    }

    fn moved(&self) -> BoxFuture<'_, ()> {
        pending().boxed()
    }

    fn doubt(&self) -> Option<Duration> {
        self.signals.as_ref()?.suspect_map();
        Some(SLOW_NODE)
    }

    fn locate_blocking(&self, _deadline: Deadline) -> Option<Arc<Target>> {
        self.target.clone()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.host.fmt(f)
    }
}
