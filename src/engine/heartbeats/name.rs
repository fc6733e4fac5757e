//! The tickets of one name, and when they are touched.

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
    /// Somebody asked for a heartbeat while one was under way, which may have been executed before.
    pub(super) again: bool,
    /// The last heartbeat had no answer, or messages may have been missed: nothing else puts the next one off.
    pub(super) owed: bool,
    /// How many touches in a row had no answer.
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

    /// A call about it begins.
    pub(super) fn begin(&mut self) {
        self.event = None;
        self.under_way = true;
        self.again = false;
        self.owed = false;
    }

    pub(super) fn ask_at(&mut self, at: Instant) {
        // What has been due for longer keeps its place: asked for again and again, the last ones would never have their turn.
        // But what is due for a reply alone is not needed once that is read.
        if self.next(None).is_none_or(|(due, _)| at < due) {
            self.not_before = at;
            self.holder_ends = at;
        }
        self.owed = true;
        self.again = self.under_way && !mutant::on(Mutant::GapDuringHeartbeatForgotten);
    }

    pub(super) fn put(&mut self, id: u64, due: Instant) {
        if let Some(old) = self.due_of.insert(id, due) {
            self.order.remove(&(old, id));
        }
        self.order.insert((due, id));
    }

    /// Of a ticket that is there.
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

    /// When it is to be touched, unless that is under way.
    pub(super) fn next(&self, look_at: Option<Instant>) -> Option<Event> {
        let &(due, _) = self.order.first().filter(|_| !self.under_way)?;
        let at = due.min(self.holder_ends).max(self.not_before);
        Some((look_at.map_or(at, |look_at| at.min(look_at)), due))
    }
}
