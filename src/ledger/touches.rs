//! When the tickets of which name are touched. Pure: time comes in as an argument.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::jitter::Jitter;
use crate::key::Keys;
use crate::ledger::schedule::BATCH;
use crate::mutant::{self, Mutant};

/// Touching the tickets of one name sooner than this after the last time would be polling.
const SHORTEST: Duration = Duration::from_millis(50);

/// How soon to look again when the lock was free and nobody could be given it.
const FREE: Duration = Duration::from_secs(1);

/// The waiting tickets of a client by name. One call per name is under way at a time.
#[derive(Debug)]
pub(crate) struct Touches {
    names: HashMap<Arc<Keys>, Name>,
    /// Exactly the names that wait for their next touch, by time.
    events: BTreeSet<(Instant, u64)>,
    serials: HashMap<u64, Arc<Keys>>,
    next_serial: u64,
    jitter: Jitter,
}

#[derive(Debug)]
struct Name {
    serial: u64,
    /// Tickets by when they have to be refreshed.
    order: BTreeSet<(Instant, u64)>,
    due_of: HashMap<u64, Instant>,
    /// When the lease of the hold in the way ends, if it is not renewed.
    holder_ends: Instant,
    not_before: Instant,
    under_way: bool,
    /// Somebody asked for a touch while one was under way, which may have been executed before.
    again: bool,
    /// The last touch had no answer, or messages may have been missed: nothing else puts the next one off.
    owed: bool,
    event: Option<Instant>,
}

impl Touches {
    pub(crate) fn new(jitter: Jitter) -> Self {
        Self { names: HashMap::new(), events: BTreeSet::new(), serials: HashMap::new(), next_serial: 0, jitter }
    }

    /// A ticket that the server just said waits, behind a hold with `holder_left` of its lease.
    pub(crate) fn insert(
        &mut self,
        keys: &Arc<Keys>,
        id: u64,
        ttl: Duration,
        sent: Instant,
        now: Instant,
        holder_left: Option<Duration>,
    ) {
        let not_before = self.earliest(now);
        let name = self.names.entry(keys.clone()).or_insert_with(|| {
            self.next_serial += 1;
            self.serials.insert(self.next_serial, keys.clone());
            Name {
                serial: self.next_serial,
                order: BTreeSet::new(),
                due_of: HashMap::new(),
                holder_ends: now,
                not_before,
                under_way: false,
                again: false,
                owed: false,
                event: None,
            }
        });
        name.put(id, sent + ttl / 3);
        if !name.owed {
            name.holder_ends = now + holder_left.unwrap_or(FREE);
        }
        Self::arm(&mut self.events, name);
    }

    /// Says whether the ticket was there.
    pub(crate) fn remove(&mut self, keys: &Arc<Keys>, id: u64) -> bool {
        let Some(name) = self.names.get_mut(keys) else { return false };
        let Some(due) = name.due_of.remove(&id) else { return false };
        name.order.remove(&(due, id));
        if name.order.is_empty() && !name.under_way {
            self.forget(keys);
        } else {
            Self::arm(&mut self.events, name);
        }
        true
    }

    /// Messages may have been missed: every name is asked about at once.
    pub(crate) fn touch_all(&mut self, now: Instant) {
        for name in self.names.values_mut() {
            name.ask_at(now);
            Self::arm(&mut self.events, name);
        }
    }

    /// The name is to be asked about at once.
    pub(crate) fn touch_soon(&mut self, keys: &Arc<Keys>, now: Instant) {
        if let Some(name) = self.names.get_mut(keys) {
            name.ask_at(now);
            Self::arm(&mut self.events, name);
        }
    }

    /// Another hold is in the way, whose lease ends then unless it is renewed.
    pub(crate) fn holder_ends_at(&mut self, keys: &Arc<Keys>, at: Instant) {
        let Some(name) = self.names.get_mut(keys) else { return };
        name.holder_ends = name.holder_ends.min(at);
        // The touch under way may have been executed before that hold began, and its answer tells of another.
        name.again |= name.under_way;
        Self::arm(&mut self.events, name);
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.events.first().map(|(at, _)| *at)
    }

    /// The next name that is due, with the tickets whose turn it is; under way until [`answered`](Self::answered).
    pub(crate) fn due(&mut self, now: Instant) -> Option<(Arc<Keys>, Vec<u64>)> {
        let &(at, serial) = self.events.first()?;
        if at > now {
            return None;
        }
        self.events.pop_first();
        let keys = self.serials.get(&serial)?.clone();
        let name = self.names.get_mut(&keys)?;
        name.event = None;
        name.under_way = true;
        name.again = false;
        name.owed = false;
        let tickets = name.order.iter().take(BATCH).map(|(_, id)| *id).collect();
        Some((keys, tickets))
    }

    /// What a touch sent at `sent` said: `waiting` tickets with their TTLs, and the lease in the way. `None` if no
    /// answer came. `again` asks for the next call at once.
    pub(crate) fn answered(
        &mut self,
        keys: &Arc<Keys>,
        sent: Instant,
        now: Instant,
        waiting: &[(u64, Duration)],
        holder_left: Option<Option<Duration>>,
        again: bool,
    ) {
        let not_before = self.earliest(now);
        let Some(name) = self.names.get_mut(keys) else { return };
        let again = again || name.again;
        name.under_way = false;
        name.owed = again || holder_left.is_none();
        for &(id, ttl) in waiting {
            if name.due_of.contains_key(&id) {
                name.put(id, sent + ttl / 3);
            }
        }
        name.not_before = if again { now } else { not_before };
        name.holder_ends = match holder_left {
            _ if again => now,
            Some(left) => now + left.unwrap_or(FREE),
            None => not_before,
        };
        if name.order.is_empty() {
            self.forget(keys);
        } else {
            Self::arm(&mut self.events, name);
        }
    }

    fn earliest(&mut self, now: Instant) -> Instant {
        now + SHORTEST + self.jitter.up_to(SHORTEST / 2)
    }

    fn forget(&mut self, keys: &Arc<Keys>) {
        if let Some(name) = self.names.remove(keys) {
            self.serials.remove(&name.serial);
            if let Some(at) = name.event {
                self.events.remove(&(at, name.serial));
            }
        }
    }

    fn arm(events: &mut BTreeSet<(Instant, u64)>, name: &mut Name) {
        if let Some(at) = name.event.take() {
            events.remove(&(at, name.serial));
        }
        if let Some(&(due, _)) = name.order.first().filter(|_| !name.under_way) {
            let at = due.min(name.holder_ends).max(name.not_before);
            events.insert((at, name.serial));
            name.event = Some(at);
        }
    }
}

impl Name {
    fn ask_at(&mut self, at: Instant) {
        self.not_before = at;
        self.holder_ends = at;
        self.owed = true;
        self.again = self.under_way && !mutant::on(Mutant::GapDuringTouchForgotten);
    }

    fn put(&mut self, id: u64, due: Instant) {
        if let Some(old) = self.due_of.insert(id, due) {
            self.order.remove(&(old, id));
        }
        self.order.insert((due, id));
    }
}

#[cfg(test)]
mod tests;
