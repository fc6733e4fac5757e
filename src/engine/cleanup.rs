//! A ticket or hold that must be removed from Redis.

use std::sync::Arc;
use std::time::Instant;

use crate::engine::lease::Hold;
use crate::protocol::key::Keys;
use crate::protocol::ticket::Ticket;

/// A ticket or a hold that this process no longer uses and that may still be in Redis.
#[derive(Clone, Debug)]
pub(crate) struct Cleanup {
    pub(crate) keys: Arc<Keys>,
    pub(crate) ticket: Ticket,
    pub(crate) from_tail: bool,
    /// If the clean-up follows a request that waited for replicas, their number: it is sent over the same connection. 0
    /// is the connection for all other calls.
    pub(crate) behind: u32,
    /// Whether the clean-up was done before, at a server that may have been replaced since.
    pub(crate) is_repeated: bool,
    /// How many calls for it have failed.
    pub(crate) failures: u32,
    /// By then it has expired in Redis, unless it is a part of a hold that lasts longer. A server that stands still may
    /// give the ticket of a party another lease after that, when it executes an old heartbeat.
    pub(super) until: Instant,
    /// The hold whose part it is.
    pub(super) part_of: Option<Arc<Hold>>,
}

impl Cleanup {
    /// The same once more. The request that it once followed is over.
    pub(super) fn repeated(self) -> Self {
        Self { is_repeated: true, behind: 0, failures: 0, ..self }
    }

    /// The same once more, for what a server has made a hold at `granted`.
    pub(super) fn of_hold_since(self, granted: Instant) -> Self {
        Self { until: granted + self.ticket.lease, ..self.repeated() }
    }

    pub(super) fn new(keys: Arc<Keys>, ticket: Ticket, until: Instant) -> Self {
        Self { keys, ticket, from_tail: false, behind: 0, is_repeated: false, failures: 0, until, part_of: None }
    }

    /// Of one part of a hold, whose other parts keep `rest` units.
    pub(super) fn of_part(hold: &Arc<Hold>, rest: u32, now: Instant) -> Self {
        let whole = Self::of(hold, now);
        Self { ticket: whole.ticket.keeping(rest), part_of: Some(hold.clone()), ..whole }
    }

    /// The same after a call that has failed. If it is of a part, and the hold lives now, it may be in Redis for one
    /// more lease: the client may leave the hold there.
    pub(super) fn again(self, now: Instant) -> Self {
        let living = self.part_of.as_ref().filter(|hold| lives(hold, now));
        let until = living.map_or(self.until, |hold| self.until.max(now + hold.longest()));
        Self { failures: self.failures.saturating_add(1), until, ..self }
    }

    /// Whether nothing is left in Redis that a call could remove, as far as the client knows.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        now >= self.until && !self.part_of.as_ref().is_some_and(|hold| lives(hold, now))
    }

    /// Whether the answer to a call is of no use any more. The next party of an open client waits for that answer,
    /// however long it takes.
    pub(crate) fn needs_no_call(&self, now: Instant, is_closed: bool) -> bool {
        self.is_over(now) && (is_closed || !self.keys.kind.has_parties())
    }

    pub(super) fn is_of_part(&self) -> bool {
        self.ticket.rest > 0
    }

    pub(super) fn of(hold: &Hold, now: Instant) -> Self {
        let ticket = hold.keys.kind.ticket(hold.id, hold.lease, hold.amount);
        Self::new(hold.keys.clone(), ticket, now + hold.longest())
    }
}

fn lives(hold: &Hold, now: Instant) -> bool {
    hold.deadline().is_some_and(|deadline| now < deadline)
}
