//! Closing the client: the end of all its attempts and holds.

use std::sync::Arc;
use std::time::Instant;

use rustc_hash::FxHashMap;

use crate::engine::state::State;
use crate::protocol::key::Keys;

/// The attempts and holds of the client under one name, by number.
#[derive(Debug, Default)]
struct Name {
    /// Attempts, in the order in which they queued up.
    attempts: Vec<u64>,
    holds: Vec<u64>,
}

impl State {
    /// Waiting attempts fail, and holds are lost. Both are cleaned up in Redis.
    ///
    /// The order makes sure that Redis grants nothing to an attempt that is about to be cancelled: names without
    /// waiting attempts go first; under each other name, the attempts go before the holds. Attempts are cancelled from
    /// both ends of the queue inwards, where each ticket is found at once.
    pub(super) fn close(&mut self, now: Instant) {
        let mut names = self.names_with_attempts(now);
        let mut index: FxHashMap<Arc<Keys>, usize> = FxHashMap::default();
        index.extend(names.iter().enumerate().map(|(at, (keys, _))| (keys.clone(), at)));
        for n in self.holds.numbers() {
            match self.holds.get(n).and_then(|hold| index.get(&hold.keys)) {
                Some(at) => names[*at].1.holds.push(n),
                None => self.hold_handler().close(n, now),
            }
        }
        for (_, Name { attempts, holds }) in names {
            let (older, younger) = attempts.split_at(attempts.len() / 2);
            for (n, from_tail) in older.iter().map(|n| (n, false)).chain(younger.iter().rev().map(|n| (n, true))) {
                let id = self.attempts.id(*n);
                self.attempt_handler().give_up_from(id, from_tail, now);
            }
            for n in holds {
                self.hold_handler().close(n, now);
            }
        }
        self.cohorts.wake_all();
        self.confirmations.close();
    }

    /// Releases all idle holds: the last handle of the client is gone, and they have no guard that keeps it alive.
    pub(super) fn close_idles(&mut self, now: Instant) {
        for n in self.idles.numbers() {
            self.hold_handler().close(n, now);
        }
    }

    fn names_with_attempts(&self, now: Instant) -> Vec<(Arc<Keys>, Name)> {
        let mut attempts: Vec<_> =
            self.attempts.iter().map(|(n, attempt)| (attempt.queued_at.unwrap_or(now), n, &attempt.keys)).collect();
        attempts.sort_unstable_by_key(|(queued_at, n, _)| (*queued_at, *n));
        let mut names: Vec<(Arc<Keys>, Name)> = Vec::new();
        let mut index: FxHashMap<&Arc<Keys>, usize> = FxHashMap::default();
        for (_, n, keys) in attempts {
            let at = *index.entry(keys).or_insert(names.len());
            if at == names.len() {
                names.push((keys.clone(), Name::default()));
            }
            names[at].1.attempts.push(n);
        }
        names
    }
}
