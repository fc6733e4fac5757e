//! What is to be ended in Redis in the background: first come, first served, at most [`MOST`] calls at a time.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use crate::engine::lease::Hold;
use crate::mutant::{self, Mutant};
use crate::protocol::key::Keys;
use crate::protocol::ticket::Ticket;

/// The most calls of one kind, heartbeats or clean-ups, that are under way at a time. A server that is back must not be asked
/// about tens of thousands of names at once.
pub(crate) const MOST: usize = 256;

/// A ticket or a hold in Redis that this process has no use for any more.
#[derive(Clone, Debug)]
pub(crate) struct Cleanup {
    pub(crate) keys: Arc<Keys>,
    pub(crate) ticket: Ticket,
    pub(crate) from_tail: bool,
    /// By then it has expired in Redis.
    pub(crate) until: Instant,
}

impl Cleanup {
    pub(super) fn of(hold: &Hold, now: Instant) -> Self {
        Self {
            keys: hold.keys.clone(),
            ticket: hold.keys.kind.ticket(hold.id, hold.lease, hold.amount),
            from_tail: false,
            until: now + hold.longest(),
        }
    }
}

/// Each clean-up stays here until it is done, so that the end of the runtime finds all of them.
#[derive(Debug, Default)]
pub(super) struct Cleanups {
    waiting: VecDeque<Cleanup>,
    under_way: HashMap<u64, Cleanup>,
    last: u64,
    /// Holds that callers are releasing or changing now.
    ending: BTreeMap<u64, Arc<Hold>>,
    last_ending: u64,
    /// The watchdog is gone: nothing is cleaned up any more.
    is_over: bool,
    /// A clean-up was added since the watchdog looked.
    is_added: bool,
    /// One of them ended, and none is left.
    is_idle_anew: bool,
}

impl Cleanups {
    pub(super) fn push(&mut self, cleanup: Cleanup) {
        if !self.is_over {
            self.waiting.push_back(cleanup);
            self.is_added = true;
        }
    }

    /// The clean-ups that may start now, each with its number for [`done`](Self::done).
    pub(super) fn start(&mut self) -> Vec<(u64, Cleanup)> {
        self.is_added = false;
        let capacity = MOST.saturating_sub(self.under_way.len()).min(self.waiting.len());
        let started: Vec<_> = (self.last + 1..).zip(self.waiting.drain(..capacity)).collect();
        self.last += started.len() as u64;
        self.under_way.extend(started.iter().cloned());
        started
    }

    pub(super) fn done(&mut self, n: u64) {
        let was_under_way = self.under_way.remove(&n).is_some();
        self.is_idle_anew |= was_under_way && self.is_idle();
    }

    /// A caller begins to release or change the hold. Returns a number for [`ended`](Self::ended).
    pub(super) fn begin_ending(&mut self, hold: &Arc<Hold>) -> u64 {
        self.last_ending += 1;
        self.ending.insert(self.last_ending, hold.clone());
        self.last_ending
    }

    pub(super) fn ended(&mut self, n: u64) {
        self.ending.remove(&n);
        self.is_idle_anew |= self.is_idle();
    }

    /// Whether nothing is left to clean up, and no caller is releasing.
    pub(super) fn is_idle(&self) -> bool {
        let mut waits_for_callers = !self.ending.is_empty() && !self.is_over;
        if mutant::on(Mutant::ReleaseCutOff) {
            waits_for_callers = false;
        }
        self.waiting.is_empty() && self.under_way.is_empty() && !waits_for_callers
    }

    /// Ends all clean-ups. Returns what is left, holds of callers first, in the order of arrival.
    pub(super) fn finish(&mut self, now: Instant) -> Vec<Cleanup> {
        self.is_over = true;
        self.is_idle_anew = true;
        let ending = std::mem::take(&mut self.ending).into_values().map(|hold| Cleanup::of(&hold, now));
        let mut under_way: Vec<_> = self.under_way.drain().collect();
        under_way.sort_unstable_by_key(|(n, _)| *n);
        let under_way = under_way.into_iter().map(|(_, cleanup)| cleanup);
        ending.chain(under_way).chain(self.waiting.drain(..)).collect()
    }

    /// Whether a clean-up was added since the last call.
    pub(super) fn take_added(&mut self) -> bool {
        std::mem::take(&mut self.is_added)
    }

    /// Whether the last clean-up or release has ended since the last call.
    pub(super) fn take_idle(&mut self) -> bool {
        std::mem::take(&mut self.is_idle_anew)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_empty() && self.ending.is_empty()
    }
}
