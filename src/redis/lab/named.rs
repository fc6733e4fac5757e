//! Who knows which server is the primary, and says what a test tells it to.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use event_listener::Event;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};

use super::super::dial::deadline::Deadline;
use super::super::dial::locate::Locate;
use super::super::failure::Failure;
use super::super::url::target::Target;
use crate::mutex::lock;
use crate::until::until;

/// Knows which server is the primary, as sentinels do.
pub(in super::super) struct Named {
    /// `None`: it is not known.
    pub(in super::super) port: Mutex<Option<u16>>,
    pub(in super::super) moves: bool,
    pub(in super::super) changed: Event,
    /// How often it was asked.
    pub(in super::super) asked: AtomicUsize,
}

impl Named {
    pub(in super::super) fn new(port: u16) -> Self {
        Self { port: Mutex::new(Some(port)), moves: true, changed: Event::new(), asked: AtomicUsize::new(0) }
    }

    pub(in super::super) fn name(&self, port: u16) {
        *lock(&self.port) = Some(port);
        self.changed.notify(usize::MAX);
    }

    async fn other_than(&self, address: String) {
        until(&self.changed, || (at(*lock(&self.port)) != address).then_some(())).await;
    }
}

fn at(port: Option<u16>) -> String {
    format!("h:{}", port.unwrap_or_default())
}

impl Locate for Named {
    fn locate(&self) -> BoxFuture<'_, Result<Arc<Target>, Failure>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let named = lock(&self.port).map(|port| Target::parse(&format!("redis://h:{port}")).unwrap());
        ready(named.map(Arc::new).ok_or_else(|| Failure::Io("no one knows".to_owned()))).boxed()
    }

    fn left<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, ()> {
        self.other_than(target.address.to_string()).boxed()
    }

    fn moved(&self) -> BoxFuture<'_, ()> {
        self.other_than(at(*lock(&self.port))).boxed()
    }

    fn locate_blocking(&self, _: Deadline) -> Option<Arc<Target>> {
        None
    }

    fn moves(&self) -> bool {
        self.moves
    }

    fn explain(&self, target: &Target, failure: Failure) -> Failure {
        match failure {
            Failure::Io(reason) => Failure::Io(format!("{} was named: {reason}", target.address)),
            Failure::Refused(refusal) => Failure::Explained(refusal, format!("{} was named", target.address)),
            other => other,
        }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the primary")
    }
}
