//! Releases of the recent past, which may have to be repeated. A server may answer a release and then be replaced by
//! one that has not received it. The name would stay held there until the lease ends. Therefore the latest releases are
//! repeated whenever the server may be another one. Each of them names an attempt id that is never used again, so it
//! changes nothing on a server that has executed the release.
//!
//! A busy name has more of them than can be repeated, and any of them may be what the new server has: a hold, or a
//! ticket that becomes one. So the attempt ids are remembered for longer than the releases, and a hold that the new
//! server names is ended again.

use std::sync::Arc;
use std::time::Instant;

use rustc_hash::FxHashMap;

use crate::engine::cleanup::Cleanup;
use crate::protocol::key::Keys;

/// At least this many names are remembered, and fewer than twice as many. The number is small because thousands of
/// clients may repeat their releases at the same time.
const NAMES: usize = 32;

/// At least this many attempts are remembered, and fewer than twice as many: what a busy client ends in the second in
/// which it may believe a server that was replaced.
const ATTEMPTS: usize = 512;

/// The last release of each name, and of each attempt, in two generations.
#[derive(Debug, Default)]
pub(super) struct Ended {
    young: FxHashMap<Arc<Keys>, Cleanup>,
    old: FxHashMap<Arc<Keys>, Cleanup>,
    /// By the number of the attempt.
    young_attempts: FxHashMap<u64, Cleanup>,
    old_attempts: FxHashMap<u64, Cleanup>,
}

impl Ended {
    pub(super) fn insert(&mut self, cleanup: Cleanup) {
        if self.young_attempts.len() == ATTEMPTS {
            // The room of the oldest ones is used again: this is part of each release.
            std::mem::swap(&mut self.old_attempts, &mut self.young_attempts);
            self.young_attempts.clear();
        }
        self.young_attempts.insert(cleanup.ticket.id.n, cleanup.clone());
        if self.young.len() == NAMES && !self.young.contains_key(&cleanup.keys) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(cleanup.keys.clone(), cleanup);
    }

    /// The release of the attempt with this number, if it is remembered.
    pub(super) fn of(&self, n: u64) -> Option<&Cleanup> {
        self.young_attempts.get(&n).or_else(|| self.old_attempts.get(&n))
    }

    /// Takes the releases of holds that have not expired in Redis yet.
    pub(super) fn take(&mut self, now: Instant) -> Vec<Cleanup> {
        let mut all = std::mem::take(&mut self.old);
        all.extend(self.young.drain());
        let mut left: Vec<Cleanup> = all.into_values().filter(|cleanup| !cleanup.is_over(now)).collect();
        left.sort_unstable_by_key(|cleanup| (cleanup.until, cleanup.ticket.id.n));
        left
    }
}
