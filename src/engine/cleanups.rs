//! What is to be ended in Redis in the background: first come, first served, a bounded number at a time.

use std::collections::{HashMap, VecDeque};

use crate::engine::Cleanup;

/// Most calls of one kind that are under way at a time, touches or clean-ups: a server that is back is not to be asked about
/// tens of thousands of names at once.
pub(crate) const MOST: usize = 256;

/// Each stays here until it is done, so that the end of the runtime finds all of them.
#[derive(Debug, Default)]
pub(crate) struct Cleanups {
    waiting: VecDeque<Cleanup>,
    under_way: HashMap<u64, Cleanup>,
    last: u64,
}

impl Cleanups {
    pub(crate) fn push(&mut self, cleanup: Cleanup) {
        self.waiting.push_back(cleanup);
    }

    /// What may be begun now, each with the number to name it by in [`done`](Self::done).
    pub(crate) fn begin(&mut self) -> Vec<(u64, Cleanup)> {
        let room = MOST.saturating_sub(self.under_way.len()).min(self.waiting.len());
        let handoff: Vec<_> = (self.last + 1..).zip(self.waiting.drain(..room)).collect();
        self.last += handoff.len() as u64;
        self.under_way.extend(handoff.iter().cloned());
        handoff
    }

    /// Says whether it was under way.
    pub(crate) fn done(&mut self, n: u64) -> bool {
        self.under_way.remove(&n).is_some()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_empty()
    }

    /// Everything that is not done, in the order in which it came. Nothing of it is left here.
    pub(crate) fn drain(&mut self) -> Vec<Cleanup> {
        let mut under_way: Vec<_> = self.under_way.drain().collect();
        under_way.sort_unstable_by_key(|(n, _)| *n);
        under_way.into_iter().map(|(_, cleanup)| cleanup).chain(self.waiting.drain(..)).collect()
    }
}
