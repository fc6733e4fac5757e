//! The tickets of one name, and when their heartbeat is due.

use std::time::Instant;

use super::tickets::Tickets;
use crate::mutant::{self, Mutant};

/// When a heartbeat of the name is due, and when the first of its tickets has to be refreshed.
pub(super) type Event = (Instant, Instant);

#[derive(Debug)]
pub(super) struct Name {
    pub(super) serial: u64,
    pub(super) tickets: Tickets,
    /// When the lease of the blocking hold ends, if it is not renewed.
    pub(super) holder_ends: Instant,
    pub(super) not_before: Instant,
    pub(super) under_way: bool,
    /// Whether a heartbeat was requested while one was under way that the server may have executed already.
    pub(super) again: bool,
    /// Whether the next heartbeat must not be put off, because the last one got no answer or messages may have been
    /// missed.
    pub(super) owed: bool,
    /// The number of unanswered heartbeats in a row.
    pub(super) unanswered: u32,
    pub(super) event: Option<Event>,
}

impl Name {
    pub(super) fn new(serial: u64, now: Instant, not_before: Instant) -> Self {
        Self {
            serial,
            tickets: Tickets::default(),
            holder_ends: now,
            not_before,
            under_way: false,
            again: false,
            owed: false,
            unanswered: 0,
            event: None,
        }
    }

    /// Records that a heartbeat begins.
    pub(super) fn begin(&mut self) {
        self.event = None;
        self.under_way = true;
        self.again = false;
        self.owed = false;
    }

    pub(super) fn ask_at(&mut self, at: Instant) {
        // A name that is already due keeps its place. If every request moved it back, a name that is requested again
        // and again might never come first. A heartbeat that is due only for an unread reply does not count, because it
        // is not needed once the reply is read.
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

    /// Changes when the ticket is due, if it exists.
    pub(super) fn refresh(&mut self, id: u64, due: Instant) {
        if self.tickets.contains(id) {
            self.tickets.put(id, due);
        }
    }

    /// When the next heartbeat is due, unless one is under way.
    pub(super) fn next(&self, look_at: Option<Instant>) -> Option<Event> {
        let due = self.tickets.first().filter(|_| !self.under_way)?;
        let at = due.min(self.holder_ends).max(self.not_before);
        Some((look_at.map_or(at, |look_at| at.min(look_at)), due))
    }
}
