//! The tickets and holds to remove from Redis in the background, in order of arrival and at most [`MOST_CALLS`] calls
//! at a time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use rustc_hash::FxHashMap;

use crate::engine::cleanup::Cleanup;
use crate::engine::ended::Ended;
use crate::engine::lease::Hold;
use crate::mutant::{self, Mutant};
use crate::tuning::{MOST_CALLS, MOST_OVERDUE, MOST_OVERDUE_CALLS};

/// Each clean-up stays here until it is done, so that the end of the runtime finds all of them.
#[derive(Debug, Default)]
pub(super) struct Cleanups {
    waiting: VecDeque<Cleanup>,
    /// Those of parties that have waited for longer than their leases. They go behind all others, and few at a time:
    /// their server does not answer, and there may be many.
    overdue: VecDeque<Cleanup>,
    under_way: FxHashMap<u64, Cleanup>,
    last: u64,
    /// How many of all are of parties, by the main key.
    parties: FxHashMap<String, usize>,
    /// Holds that callers are releasing or changing now, with the time at which they began, in the order of their
    /// numbers.
    ending: Vec<(u64, Arc<Hold>, Instant)>,
    last_ending: u64,
    ended: Ended,
    /// The attempts to which the server has given a hold while their end was under way, and when.
    granted_meanwhile: FxHashMap<u64, Instant>,
    /// When the server may have been replaced last.
    last_gap: Option<Instant>,
    /// The last clean-up that was begun before that.
    before_gap: u64,
    /// Whether the watchdog is gone, so that nothing is cleaned up any more.
    is_over: bool,
    /// Whether a clean-up was added since the watchdog looked.
    is_added: bool,
    /// Whether the last of all clean-ups has ended since the idle event was sent, or the last of the parties of a name.
    is_idle_anew: bool,
}

impl Cleanups {
    pub(super) fn push(&mut self, cleanup: Cleanup) {
        if !self.is_over {
            self.count(&cleanup);
            self.waiting.push_back(cleanup);
            self.is_added = true;
        }
    }

    /// The clean-ups that may start now, each with its number for [`done`](Self::done).
    pub(super) fn start(&mut self) -> Vec<(u64, Cleanup)> {
        self.is_added = false;
        let capacity = MOST_CALLS.saturating_sub(self.under_way.len()).min(self.waiting.len());
        let overdue = MOST_OVERDUE_CALLS.saturating_sub(self.under_way.len() + capacity).min(self.overdue.len());
        let next = self.waiting.drain(..capacity).chain(self.overdue.drain(..overdue));
        let started: Vec<_> = (self.last + 1..).zip(next).collect();
        self.last += started.len() as u64;
        self.under_way.extend(started.iter().cloned());
        started
    }

    /// Whether clean-ups may not begin before others have ended.
    pub(super) fn is_capped(&self) -> bool {
        !self.waiting.is_empty() && self.under_way.len() >= MOST_CALLS
            || !self.overdue.is_empty() && self.under_way.len() >= MOST_OVERDUE_CALLS
    }

    /// `was_held`: the server has taken a hold away.
    pub(super) fn done(&mut self, n: u64, was_held: bool) {
        let Some(cleanup) = self.under_way.remove(&n) else { return };
        self.discount(&cleanup);
        // A part ends no hold. While its hold lives, it is given back again after each gap.
        if cleanup.is_of_part() {
            self.is_idle_anew |= self.is_idle();
            return;
        }
        let granted = self.granted_meanwhile.remove(&cleanup.ticket.id.n).filter(|_| !was_held);
        // In both cases, the answer may be that of a server that was replaced meanwhile.
        if let Some(granted) = granted {
            self.push(cleanup.of_hold_since(granted));
        } else if n <= self.before_gap {
            self.push(cleanup.repeated());
        } else {
            // Also a repeated one: the server may be replaced once more, and a message about the name may be missed
            // again.
            self.ended.insert(cleanup);
        }
        self.is_idle_anew |= self.is_idle();
    }

    /// The call has failed, and another one follows behind those that wait: they may be for a server that answers. The
    /// watchdog looks at the clean-ups whenever a call has ended, so this is no event.
    pub(super) fn again(&mut self, n: u64, now: Instant) {
        let Some(cleanup) = self.under_way.remove(&n).map(|cleanup| cleanup.again(now)) else { return };
        if !cleanup.is_over(now) {
            self.waiting.push_back(cleanup);
        } else if self.overdue.len() < MOST_OVERDUE {
            self.overdue.push_back(cleanup);
        } else {
            self.discount(&cleanup);
        }
    }

    fn count(&mut self, cleanup: &Cleanup) {
        if cleanup.keys.kind.has_parties() {
            *self.parties.entry(cleanup.keys.main().to_owned()).or_default() += 1;
        }
    }

    /// Counts one less. The last one of the parties of a name is an event.
    fn discount(&mut self, cleanup: &Cleanup) {
        if !cleanup.keys.kind.has_parties() {
            return;
        }
        if let Some(left) = self.parties.get_mut(cleanup.keys.main()).filter(|left| **left > 1) {
            *left -= 1;
        } else {
            self.parties.remove(cleanup.keys.main());
            self.is_idle_anew = true;
        }
    }

    /// A caller begins to release or change the hold. Returns a number for [`ended`](Self::ended).
    pub(super) fn begin_ending(&mut self, hold: &Arc<Hold>, now: Instant) -> u64 {
        self.last_ending += 1;
        self.ending.push((self.last_ending, hold.clone(), now));
        self.last_ending
    }

    pub(super) fn ended(&mut self, n: u64) {
        if let Ok(at) = self.ending.binary_search_by_key(&n, |(n, ..)| *n) {
            let (_, hold, since) = self.ending.remove(at);
            self.set_ended(&hold, since);
        }
        self.is_idle_anew |= self.is_idle();
    }

    /// Records that the server has ended the hold, by a request sent at `sent`.
    pub(super) fn set_ended(&mut self, hold: &Hold, sent: Instant) {
        let cleanup = Cleanup::of(hold, sent);
        if let Some(granted) = self.granted_meanwhile.remove(&hold.id.n) {
            self.push(cleanup.clone().of_hold_since(granted));
        } else if self.last_gap.is_some_and(|gap| gap > sent) {
            self.push(cleanup.clone().repeated());
        }
        self.ended.insert(cleanup);
    }

    /// Repeats the latest releases, because the server may be another one than before.
    pub(super) fn repeat(&mut self, now: Instant) {
        if mutant::on(Mutant::ReleaseNotRepeated) {
            return;
        }
        (self.last_gap, self.before_gap) = (Some(now), self.last);
        for cleanup in self.ended.take(now) {
            self.push(cleanup.repeated());
        }
    }

    /// The server has given a hold to an attempt. If that has been ended, at a server that was replaced by one that
    /// does not know, it is ended again. Where there are no holds, the server only says how a wait has ended.
    pub(super) fn end_again(&mut self, n: u64, now: Instant) {
        if let Some(cleanup) = self.ended.of(n).cloned() {
            if cleanup.keys.kind.has_holds() {
                self.push(cleanup.of_hold_since(now));
            }
            return;
        }
        let ends =
            |cleanup: &Cleanup| cleanup.ticket.id.n == n && cleanup.keys.kind.has_holds() && !cleanup.is_of_part();
        let is_cleaned_up = self.under_way.values().any(ends);
        if is_cleaned_up || self.ending.iter().any(|(_, hold, _)| hold.id.n == n) {
            self.granted_meanwhile.insert(n, now);
        }
    }

    /// Whether nothing is left to clean up and no caller is releasing a hold.
    pub(super) fn is_idle(&self) -> bool {
        let mut waits_for_callers = !self.ending.is_empty() && !self.is_over;
        if mutant::on(Mutant::ReleaseCutOff) {
            waits_for_callers = false;
        }
        self.waiting.is_empty() && self.overdue.is_empty() && self.under_way.is_empty() && !waits_for_callers
    }

    /// Whether a party with this main key is to be cleaned up.
    pub(super) fn has_parties(&self, main: &str) -> bool {
        self.parties.contains_key(main)
    }

    /// Stops all clean-ups, and returns those that were not done: holds of callers first, in order of arrival.
    pub(super) fn finish(&mut self, now: Instant) -> Vec<Cleanup> {
        self.is_over = true;
        self.is_idle_anew = true;
        self.parties.clear();
        let ending = std::mem::take(&mut self.ending).into_iter().map(|(_, hold, _)| Cleanup::of(&hold, now));
        let mut under_way: Vec<_> = self.under_way.drain().collect();
        under_way.sort_unstable_by_key(|(n, _)| *n);
        let under_way = under_way.into_iter().map(|(_, cleanup)| cleanup);
        ending.chain(under_way).chain(self.waiting.drain(..)).chain(self.overdue.drain(..)).collect()
    }

    /// Whether a clean-up was added since the last call.
    pub(super) fn take_added(&mut self) -> bool {
        std::mem::take(&mut self.is_added)
    }

    /// Whether the last of all clean-ups and releases has ended since the last call, or the last of the parties of a
    /// name.
    pub(super) fn take_idle(&mut self) -> bool {
        std::mem::take(&mut self.is_idle_anew)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.overdue.is_empty() && self.under_way.is_empty() && self.ending.is_empty()
    }
}
