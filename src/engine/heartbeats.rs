//! When the server is asked about the tickets of each name. Pure: time comes in as an argument.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backoff::Pauses;
use crate::engine::cleanups::MOST;
use crate::engine::schedule::BATCH;
use crate::jitter::Jitter;
use crate::protocol::key::Keys;

mod name;
pub(super) mod unread;

use name::{Event, Name};
use unread::{Unread, UnreadId};

/// The shortest time between two heartbeats of one name: more of them would be polling.
const SHORTEST: Duration = Duration::from_millis(50);

/// The time until the next heartbeat when nothing was in the way and no waiter could be granted.
const FREE: Duration = Duration::from_secs(1);

/// The pauses after heartbeats of a name that got no answer.
const UNANSWERED: Pauses = Pauses { shortest: SHORTEST, longest: Duration::from_millis(3200) };

/// The heartbeat at the end of the lease in the way is later by up to this, so that clients do not all ask at the same moment.
const SPREAD: Duration = Duration::from_millis(100);

/// The waiting tickets of a client by name. One call per name is under way at a time, and [`MOST`] of all names.
#[derive(Debug)]
pub(crate) struct Heartbeats {
    names: HashMap<Arc<Keys>, Name>,
    /// Every name that waits for its next heartbeat, by its time. Of equal times, the name whose ticket expires first comes first.
    events: BTreeSet<(Event, u64)>,
    serials: HashMap<u64, Arc<Keys>>,
    next_serial: u64,
    unread: Unread,
    under_way: usize,
    jitter: Jitter,
}

impl Heartbeats {
    pub(crate) fn new(jitter: Jitter) -> Self {
        Self {
            names: HashMap::new(),
            events: BTreeSet::new(),
            serials: HashMap::new(),
            next_serial: 0,
            unread: Unread::default(),
            under_way: 0,
            jitter,
        }
    }

    /// The server answered that the ticket waits, behind a hold with `holder_left` of its lease.
    pub(crate) fn insert(
        &mut self,
        keys: &Arc<Keys>,
        id: u64,
        ttl: Duration,
        sent: Instant,
        now: Instant,
        holder_left: Option<Duration>,
    ) {
        let (not_before, due) = (self.earliest(now), sent + ttl / 3 - self.early(ttl));
        let holder_ends = self.look(now, holder_left);
        let name = self.names.entry(keys.clone()).or_insert_with(|| {
            self.next_serial += 1;
            self.serials.insert(self.next_serial, keys.clone());
            Name::new(self.next_serial, now, not_before)
        });
        name.put(id, due);
        if !name.owed {
            name.holder_ends = holder_ends;
        }
        self.arm(keys);
    }

    /// Says whether the ticket was there.
    pub(crate) fn remove(&mut self, keys: &Arc<Keys>, id: u64) -> bool {
        let Some(name) = self.names.get_mut(keys) else { return false };
        if !name.take(id) {
            return false;
        }
        if name.order.is_empty() && !name.under_way {
            self.forget(keys);
        } else {
            self.arm(keys);
        }
        true
    }

    /// Messages may have been missed: a heartbeat of every name is due at once.
    pub(crate) fn heartbeat_all(&mut self, now: Instant) {
        for (keys, name) in &mut self.names {
            name.ask_at(now);
            Self::arm_name(&mut self.events, name, self.unread.first(keys));
        }
    }

    /// A heartbeat of the name is due at once.
    pub(crate) fn heartbeat_soon(&mut self, keys: &Arc<Keys>, now: Instant) {
        if let Some(name) = self.names.get_mut(keys) {
            name.ask_at(now);
            self.arm(keys);
        }
    }

    /// Another hold is in the way now. Its lease ends at `at` unless it is renewed.
    pub(crate) fn holder_ends_at(&mut self, keys: &Arc<Keys>, at: Instant) {
        let Some(name) = self.names.get_mut(keys) else { return };
        name.holder_ends = name.holder_ends.min(at);
        // The heartbeat under way may have been executed before that hold began, so its answer may be about another.
        name.again |= name.under_way;
        self.arm(keys);
    }

    /// A release is sent, and its reply may carry grants for tickets of the name. If the reply is not read by `look_at`, a heartbeat
    /// is due: the future that would read the reply may not be polled.
    pub(crate) fn unread(&mut self, keys: &Arc<Keys>, look_at: Instant) -> UnreadId {
        let id = self.unread.insert(keys, look_at);
        self.arm(keys);
        id
    }

    /// The reply was read, or never will be.
    pub(crate) fn read(&mut self, keys: &Arc<Keys>, id: UnreadId) {
        self.unread.remove(keys, id);
        self.arm(keys);
    }

    /// `None` if nothing can be begun before another call has ended.
    pub(crate) fn next(&self) -> Option<Instant> {
        let first = self.events.first().filter(|_| self.under_way < MOST);
        first.map(|((at, _), _)| *at)
    }

    /// The next name that is due, with the tickets whose turn it is; under way until [`answered`](Self::answered) or
    /// [`unanswered`](Self::unanswered).
    pub(crate) fn due(&mut self, now: Instant) -> Option<(Arc<Keys>, Vec<u64>)> {
        if self.next()? > now {
            return None;
        }
        let (_, serial) = self.events.pop_first()?;
        let keys = self.serials.get(&serial)?.clone();
        let name = self.names.get_mut(&keys)?;
        name.begin();
        self.unread.looked(&keys, now);
        self.under_way += 1;
        let tickets = name.order.iter().take(BATCH).map(|(_, id)| *id).collect();
        Some((keys, tickets))
    }

    /// The server answered a heartbeat sent at `sent`: these tickets wait, with their times to live, behind a hold with `holder_left` of
    /// its lease. With `again`, the next heartbeat is due at once.
    pub(crate) fn answered(
        &mut self,
        keys: &Arc<Keys>,
        sent: Instant,
        now: Instant,
        waiting: &[(u64, Duration)],
        holder_left: Option<Duration>,
        again: bool,
    ) {
        let (not_before, holder_ends) = (self.earliest(now), self.look(now, holder_left));
        // One for all tickets: those that share a heartbeat keep sharing it.
        let ttl = waiting.iter().map(|(_, ttl)| *ttl).min().unwrap_or_default();
        let early = self.early(ttl);
        self.end(keys, |name| {
            name.unanswered = 0;
            for &(id, ttl) in waiting {
                name.refresh(id, sent + ttl / 3 - early);
            }
            let again = again || name.again;
            name.owed = again;
            (name.not_before, name.holder_ends) = if again { (now, now) } else { (not_before, holder_ends) };
        });
    }

    /// No usable answer came to a heartbeat. The next one follows after a pause, longer each time, but no longer than
    /// `longest`.
    pub(crate) fn unanswered(&mut self, keys: &Arc<Keys>, now: Instant, longest: Duration) {
        let Some(name) = self.names.get_mut(keys) else { return };
        let pause = UNANSWERED.after(name.unanswered, &mut self.jitter).min(longest).max(SHORTEST);
        self.end(keys, |name| {
            name.unanswered += 1;
            name.owed = true;
            let at = if name.again { now } else { now + pause };
            (name.not_before, name.holder_ends) = (at, at);
        });
    }

    fn end(&mut self, keys: &Arc<Keys>, change: impl FnOnce(&mut Name)) {
        let Some(name) = self.names.get_mut(keys).filter(|name| name.under_way) else { return };
        name.under_way = false;
        self.under_way = self.under_way.saturating_sub(1);
        change(name);
        if name.order.is_empty() {
            self.forget(keys);
        } else {
            self.arm(keys);
        }
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        let Self { names, events, serials, under_way, .. } = self;
        names.is_empty() && events.is_empty() && serials.is_empty() && *under_way == 0
    }

    fn earliest(&mut self, now: Instant) -> Instant {
        now + SHORTEST + self.jitter.up_to(SHORTEST / 2)
    }

    /// How much sooner than after a third of its time to live a ticket is refreshed. It makes names whose heartbeats fell on one
    /// moment move apart.
    fn early(&mut self, ttl: Duration) -> Duration {
        self.jitter.up_to(ttl / 30)
    }

    /// When the lease in the way ends if it is not renewed, or a little later.
    fn look(&mut self, now: Instant, holder_left: Option<Duration>) -> Instant {
        let left = holder_left.unwrap_or(FREE);
        now + left + self.jitter.up_to((left / 10).min(SPREAD))
    }

    fn forget(&mut self, keys: &Arc<Keys>) {
        if let Some(name) = self.names.remove(keys) {
            self.serials.remove(&name.serial);
            if let Some(at) = name.event {
                self.events.remove(&(at, name.serial));
            }
        }
    }

    fn arm(&mut self, keys: &Arc<Keys>) {
        if let Some(name) = self.names.get_mut(keys) {
            Self::arm_name(&mut self.events, name, self.unread.first(keys));
        }
    }

    fn arm_name(events: &mut BTreeSet<(Event, u64)>, name: &mut Name, look_at: Option<Instant>) {
        if let Some(event) = name.event.take() {
            events.remove(&(event, name.serial));
        }
        name.event = name.next(look_at);
        if let Some(event) = name.event {
            events.insert((event, name.serial));
        }
    }
}

#[cfg(test)]
mod tests;
