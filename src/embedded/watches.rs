//! Keys whose changes are reported to those who watch them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::Waker;

use super::channels::{Channels, Queue};

/// A watch is one of all keys that begin alike. What a script changes is reported at its end, once. A command that
/// writes counts as a change, also if it changes nothing: then Redis reports nothing.
#[derive(Default)]
pub(super) struct Watches {
    /// By the beginning of the keys.
    watchers: Channels,
    changed: BTreeSet<Vec<u8>>,
    /// All keys are gone.
    flushed: bool,
}

impl Watches {
    pub(super) fn watch(&mut self, prefix: &[u8], queue: &Arc<Queue>) {
        self.watchers.subscribe(prefix, queue);
    }

    pub(super) fn unwatch(&mut self, prefix: &[u8], queue: &Arc<Queue>) {
        self.watchers.unsubscribe(prefix, queue);
    }

    pub(super) fn changed(&mut self, key: &[u8]) {
        if !self.watchers.is_empty() {
            self.changed.insert(key.to_vec());
        }
    }

    pub(super) fn flushed(&mut self) {
        self.flushed = true;
    }

    /// Reports what has changed. The caller must wake the wakers after it has unlocked the server.
    pub(super) fn report(&mut self) -> Vec<Waker> {
        let (changed, flushed) = (std::mem::take(&mut self.changed), std::mem::take(&mut self.flushed));
        if flushed || !changed.is_empty() {
            for prefix in self.watchers.names() {
                if flushed || changed.range(prefix.clone()..).next().is_some_and(|key| key.starts_with(&prefix)) {
                    self.watchers.publish(&prefix, b"");
                }
            }
        }
        self.watchers.take_wakers()
    }
}
