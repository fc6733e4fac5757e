//! Decides when the server is asked about the tickets of each name. Pure: time comes in as an argument.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::jitter::Jitter;
use crate::protocol::key::Keys;
use crate::tuning::{BATCH, HEARTBEAT, MOST_CALLS};

mod name;
mod tickets;
pub(super) mod unread;

use name::{Event, Name};
use unread::{Unread, UnreadId};

/// The shortest time between two heartbeats of one name. Shorter ones would be polling.
const SHORTEST: Duration = HEARTBEAT.shortest;

/// The time until the next heartbeat if no other hold blocked the ticket and yet no waiter could be granted.
const FREE: Duration = Duration::from_secs(1);

/// The heartbeat at the end of the blocking lease is delayed by up to this, so that clients do not all ask at the same
/// moment.
const SPREAD: Duration = Duration::from_millis(100);

/// The waiting tickets of a client, by name. At most one call per name, and [`MOST_CALLS`] calls in all, are under
/// way at a time.
#[derive(Debug)]
pub(crate) struct Heartbeats {
    /// Boxed: up to half of a table is unused.
    names: FxHashMap<Arc<Keys>, Box<Name>>,
    /// Every name that waits for its next heartbeat, by its time. Of equal times, the name whose ticket expires first
    /// comes first.
    events: BTreeMap<(Event, u64), Arc<Keys>>,
    next_serial: u64,
    unread: Unread,
    under_way: usize,
    /// Whether a heartbeat may be due sooner than at the last [`take_changed`](Self::take_changed).
    is_changed: bool,
    jitter: Jitter,
}

impl Heartbeats {
    pub(crate) fn new(jitter: Jitter) -> Self {
        Self {
            names: FxHashMap::default(),
            events: BTreeMap::new(),
            next_serial: 0,
            unread: Unread::default(),
            under_way: 0,
            is_changed: false,
            jitter,
        }
    }

    /// Adds a ticket that waits, by the server's answer, behind a hold with `holder_left` of its lease.
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
            Box::new(Name::new(self.next_serial, now, not_before))
        });
        name.tickets.put(id, due);
        if !name.owed {
            name.holder_ends = holder_ends;
        }
        self.arm(keys);
    }

    /// Removes the ticket. Returns whether it was there.
    pub(crate) fn remove(&mut self, keys: &Arc<Keys>, id: u64) -> bool {
        let Some(name) = self.names.get_mut(keys) else { return false };
        if !name.tickets.take(id) {
            return false;
        }
        if name.tickets.is_empty() && !name.under_way {
            self.forget(keys);
        } else {
            self.arm(keys);
        }
        true
    }

    /// Makes a heartbeat of every name due at once, because messages may have been missed.
    pub(crate) fn heartbeat_all(&mut self, now: Instant) {
        self.is_changed = true;
        for (keys, name) in &mut self.names {
            name.ask_at(now);
            Self::arm_name(&mut self.events, keys, name, self.unread.first(keys));
        }
    }

    /// Makes a heartbeat of the name due at once.
    pub(crate) fn heartbeat_soon(&mut self, keys: &Arc<Keys>, now: Instant) {
        if let Some(name) = self.names.get_mut(keys) {
            name.ask_at(now);
            self.arm(keys);
        }
    }

    /// Records that another hold blocks the name now. Its lease ends at `at` unless it is renewed.
    pub(crate) fn holder_ends_at(&mut self, keys: &Arc<Keys>, at: Instant) {
        let Some(name) = self.names.get_mut(keys) else { return };
        name.holder_ends = name.holder_ends.min(at);
        // The heartbeat under way may have been executed before that hold began. Its answer may then be about an
        // earlier hold.
        name.again |= name.under_way;
        self.arm(keys);
    }

    /// Called when a release is sent. Its reply may carry grants for tickets of the name. If the reply is not read by
    /// `look_at`, a heartbeat becomes due, because the future that would read the reply may never be polled.
    pub(crate) fn unread(&mut self, keys: &Arc<Keys>, look_at: Instant) -> UnreadId {
        let id = self.unread.insert(keys, look_at);
        self.arm(keys);
        id
    }

    /// Called when the reply was read, or will never be.
    pub(crate) fn read(&mut self, keys: &Arc<Keys>, id: UnreadId) {
        self.unread.remove(keys, id);
        self.arm(keys);
    }

    /// The ticket of the name that is to be refreshed first.
    pub(crate) fn first(&self, keys: &Arc<Keys>) -> Option<u64> {
        self.names.get(keys)?.tickets.first_ids(1).pop()
    }

    /// When the next heartbeat is due. `None` if no heartbeat can begin before another one has ended.
    pub(crate) fn next(&self) -> Option<Instant> {
        let first = self.events.first_key_value().filter(|_| self.under_way < MOST_CALLS);
        first.map(|(((at, _), _), _)| *at)
    }

    /// Whether heartbeats are due that may not begin before others have ended.
    pub(crate) fn is_capped(&self, now: Instant) -> bool {
        let first = self.events.first_key_value();
        self.under_way >= MOST_CALLS && first.is_some_and(|(((at, _), _), _)| *at <= now)
    }

    /// Whether [`next`](Self::next) may be sooner than at the last call.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    /// Takes the next name that is due, with the tickets to send. The name is under way until
    /// [`answered`](Self::answered) or [`unanswered`](Self::unanswered).
    pub(crate) fn due(&mut self, now: Instant) -> Option<(Arc<Keys>, Vec<u64>)> {
        if self.next()? > now {
            return None;
        }
        let (_, keys) = self.events.pop_first()?;
        let name = self.names.get_mut(&keys)?;
        name.begin();
        self.unread.looked(&keys, now);
        self.under_way += 1;
        let tickets = name.tickets.first_ids(BATCH);
        Some((keys, tickets))
    }

    /// Records the answer to a heartbeat sent at `sent`: these tickets wait, with their times to live, behind a hold
    /// with `holder_left` of its lease. With `again`, the next heartbeat is due at once.
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
        // All tickets get the shortest time to live, so that those which share a heartbeat keep sharing it.
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

    /// Records that a heartbeat got no usable answer. The next one follows after a pause, which grows each time up to
    /// `longest`. When `left` is over, a ticket of the name fails. The last heartbeat is sent early enough to be
    /// answered before that.
    pub(crate) fn unanswered(&mut self, keys: &Arc<Keys>, now: Instant, longest: Duration, left: Duration) {
        let Some(name) = self.names.get_mut(keys) else { return };
        let mut pause = HEARTBEAT.after(name.unanswered, &mut self.jitter).min(longest).max(SHORTEST);
        if pause >= left {
            pause = if left > SHORTEST * 4 { left * 3 / 4 } else { left };
        }
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
        self.is_changed = true;
        change(name);
        if name.tickets.is_empty() {
            self.forget(keys);
        } else {
            self.arm(keys);
        }
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        let Self { names, events, under_way, .. } = self;
        names.is_empty() && events.is_empty() && *under_way == 0
    }

    fn earliest(&mut self, now: Instant) -> Instant {
        now + SHORTEST + self.jitter.up_to(SHORTEST / 2)
    }

    /// How much earlier than after a third of its time to live a ticket is refreshed. Names whose heartbeats coincide
    /// drift apart by this.
    fn early(&mut self, ttl: Duration) -> Duration {
        self.jitter.up_to(ttl / 30)
    }

    /// When to ask again about the blocking lease: when it ends if it is not renewed, or a little later.
    fn look(&mut self, now: Instant, holder_left: Option<Duration>) -> Instant {
        let left = holder_left.unwrap_or(FREE);
        now + left + self.jitter.up_to((left / 10).min(SPREAD))
    }

    fn forget(&mut self, keys: &Arc<Keys>) {
        if let Some(name) = self.names.remove(keys)
            && let Some(at) = name.event
        {
            self.events.remove(&(at, name.serial));
        }
    }

    fn arm(&mut self, keys: &Arc<Keys>) {
        self.is_changed = true;
        if let Some(name) = self.names.get_mut(keys) {
            Self::arm_name(&mut self.events, keys, name, self.unread.first(keys));
        }
    }

    fn arm_name(
        events: &mut BTreeMap<(Event, u64), Arc<Keys>>,
        keys: &Arc<Keys>,
        name: &mut Name,
        look_at: Option<Instant>,
    ) {
        if let Some(event) = name.event.take() {
            events.remove(&(event, name.serial));
        }
        name.event = name.next(look_at);
        if let Some(event) = name.event {
            events.insert((event, name.serial), keys.clone());
        }
    }
}

#[cfg(test)]
mod tests;
