//! Which scripts the server behind a connection is known to have.

use std::sync::Mutex;

use crate::scripts::Script;
use crate::sync::lock;

/// The scripts that were run over a connection.
///
/// A script is sent whole until the server has run it once over this connection, and by its SHA1 from then on.
/// Sending the SHA1 first would cost a round trip more, and would break the order of calls: while the answer
/// `NOSCRIPT` travels, a later call with another script would be executed, for instance the cancellation of the
/// very call that is still to be sent again.
#[derive(Debug, Default)]
pub(super) struct Loaded(Mutex<Vec<&'static Script>>);

impl Loaded {
    pub(super) fn has(&self, script: &'static Script) -> bool {
        lock(&self.0).iter().any(|loaded| std::ptr::eq(*loaded, script))
    }

    pub(super) fn add(&self, script: &'static Script) {
        let mut loaded = lock(&self.0);
        if !loaded.iter().any(|known| std::ptr::eq(*known, script)) {
            loaded.push(script);
        }
    }

    pub(super) fn remove(&self, script: &'static Script) {
        lock(&self.0).retain(|loaded| !std::ptr::eq(*loaded, script));
    }
}
