//! What is remembered of the tickets that stand before another one.

use uuid::Uuid;

use crate::protocol::limits::{READ, WRITE};
use crate::protocol::ticket::{Claim, Ticket};

/// The tickets that were passed on the way through a queue, as far as the next ones need to know them.
#[derive(Default)]
pub(super) struct Passed {
    all: Two,
    not_readers: Two,
}

impl Passed {
    pub(super) fn add(&mut self, ticket: &Ticket) {
        self.all.add(ticket.id.client);
        if !is_reader(ticket.claim) {
            self.not_readers.add(ticket.id.client);
        }
    }

    /// Whether a ticket of another client was passed that is not a reader's too. One of these two waits for the other.
    pub(super) fn has_one_for(&self, ticket: &Ticket) -> bool {
        let passed = if is_reader(ticket.claim) { &self.not_readers } else { &self.all };
        passed.has_another(ticket.id.client)
    }
}

/// Up to two different clients. That is enough to tell whether any other client than a given one was added.
#[derive(Default)]
struct Two(Vec<Uuid>);

impl Two {
    fn add(&mut self, client: Uuid) {
        if self.0.len() < 2 && !self.0.contains(&client) {
            self.0.push(client);
        }
    }

    fn has_another(&self, client: Uuid) -> bool {
        self.0.iter().any(|other| *other != client)
    }
}

pub(super) fn is_reader(claim: Claim) -> bool {
    matches!(claim, Claim::Units { units: READ, limit: WRITE })
}
