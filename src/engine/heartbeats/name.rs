//! The tickets of one name, and when their heartbeat is due.

use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

use crate::mutant::{self, Mutant};

/// When a heartbeat of a name is due, and when the first of its tickets has to be refreshed.
pub(super) type Event = (Instant, Instant);

#[derive(Debug)]
pub(super) struct Name {
    pub(super) serial: u64,
    /// Tickets by when they have to be refreshed.
    pub(super) order: BTreeSet<(Instant, u64)>,
    due_of: HashMap<u64, Instant>,
    /// When the lease of the hold in the way ends, if it is not renewed.
    pub(super) holder_ends: Instant,
    pub(super) not_before: Instant,
    pub(super) under_way: bool,
    /// A heartbeat was asked for while one was under way that may have been executed already.
    pub(super) again: bool,
    /// The last heartbeat got no answer, or messages may have been missed: the next one is not put off.
    pub(super) owed: bool,
    /// How many heartbeats in a row got no answer.
    pub(super) unanswered: u32,
    pub(super) event: Option<Event>,
}

impl Name {
    pub(super) fn new(serial: u64, now: Instant, not_before: Instant) -> Self {
        Self {
            serial,
            order: BTreeSet::new(),
            due_of: HashMap::new(),
            holder_ends: now,
            not_before,
            under_way: false,
            again: false,
            owed: false,
            unanswered: 0,
            event: None,
        }
    }

    /// A heartbeat begins.
    pub(super) fn begin(&mut self) {
        self.event = None;
        self.under_way = true;
        self.again = false;
        self.owed = false;
    }

    pub(super) fn ask_at(&mut self, at: Instant) {
        // A name that is due already keeps its place. If every request moved it, a name that is asked for again and again might never
        // come first. A heartbeat that is due for an unread reply alone does not count: it is not needed once the reply is read.
        if self.next(None).is_none_or(|(due, _)| at < due) {
            self.not_before = at;
            self.holder_ends = at;
        }
        self.owed = true;
        self.again = self.under_way;
        if mutant::on(Mutant::GapDuringHeartbeatForgotten) {
            self.again = false;
        }
    }

    pub(super) fn put(&mut self, id: u64, due: Instant) {
        if let Some(old) = self.due_of.insert(id, due) {
            self.order.remove(&(old, id));
        }
        self.order.insert((due, id));
    }

    /// Changes when the ticket is due, if it is there.
    pub(super) fn refresh(&mut self, id: u64, due: Instant) {
        if self.due_of.contains_key(&id) {
            self.put(id, due);
        }
    }

    /// Says whether the ticket was there.
    pub(super) fn take(&mut self, id: u64) -> bool {
        let Some(due) = self.due_of.remove(&id) else { return false };
        self.order.remove(&(due, id))
    }

    /// When the next heartbeat is due, unless one is under way.
    pub(super) fn next(&self, look_at: Option<Instant>) -> Option<Event> {
        let &(due, _) = self.order.first().filter(|_| !self.under_way)?;
        let at = due.min(self.holder_ends).max(self.not_before);
        Some((look_at.map_or(at, |look_at| at.min(look_at)), due))
    }
}
