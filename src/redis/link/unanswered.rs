//! A call that its caller gives up counts as [silence](super::silence) of its connection.

use std::time::Instant;

use super::super::failure::Failure;
use super::Link;

/// A call on a connection. If it is dropped before the call [is over](Self::take), the caller has given it up.
pub(in crate::redis) struct HandedCall<'a> {
    link: &'a Link,
    to: Option<(u64, Instant)>,
}

impl<'a> HandedCall<'a> {
    pub(in crate::redis) fn new(link: &'a Link) -> Self {
        Self { link, to: None }
    }

    /// Records the generation of the connection, and the time at which the call got it.
    pub(in crate::redis) fn set(&mut self, generation: u64, since: Instant) {
        self.to = Some((generation, since));
    }

    /// Ends the call: it was answered, its connection has ended, or its time is over.
    pub(in crate::redis) fn take(&mut self) -> Option<(u64, Instant)> {
        self.to.take()
    }
}

impl Drop for HandedCall<'_> {
    fn drop(&mut self) {
        if let Some((generation, since)) = self.to {
            self.link.given_up(generation, since);
        }
    }
}

impl Link {
    /// Records that a caller gave up after it had waited for an answer of this connection from `since` on. If callers
    /// have waited for the timeout in all, the connection is given up.
    pub(in crate::redis) fn given_up(&self, generation: u64, since: Instant) {
        let waited = self.silence.add(generation, since, self.executor.now());
        if waited >= self.timeout {
            self.suspect(generation, Failure::Io("the connection gave no answer".to_owned()));
        }
    }
}
