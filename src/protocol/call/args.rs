//! The arguments of a call, one after the other.

use std::time::Duration;

use uuid::Uuid;

use super::{ScriptCall, Site, Word};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::copy::CallCopy;
use crate::protocol::key::inbox_prefix_in;
use crate::protocol::ticket::{Claim, Ticket};

impl<'a, T> ScriptCall<'a, T> {
    pub(in crate::protocol) fn text(self, text: &'a str) -> Self {
        self.word(Word::Text(text))
    }

    pub(in crate::protocol) fn id(self, id: AttemptId) -> Self {
        self.word(Word::Spelled(id.text()))
    }

    /// Adds a number, or an empty argument.
    pub(in crate::protocol) fn maybe_number(self, number: Option<u64>) -> Self {
        match number {
            Some(number) => self.number(number),
            None => self.text(""),
        }
    }

    /// Adds an attempt id, or an empty argument.
    pub(in crate::protocol) fn maybe_id(self, id: Option<AttemptId>) -> Self {
        match id {
            Some(id) => self.id(id),
            None => self.text(""),
        }
    }

    /// Adds what a script has to know of a copy of a call that is marked. The id is in the mark.
    pub(in crate::protocol) fn copy(self, CallCopy { not_after, known_until, resent, .. }: CallCopy) -> Self {
        self.number(not_after).number(known_until).number(resent)
    }

    pub(in crate::protocol) fn client(self, client: Uuid) -> Self {
        self.word(Word::Spelled(client.to_string()))
    }

    pub(in crate::protocol) fn ticket(self, ticket: &Ticket) -> Self {
        self.word(Word::Spelled(ticket.text()))
    }

    pub(in crate::protocol) fn spelled(self, text: String) -> Self {
        self.word(Word::Spelled(text))
    }

    pub(in crate::protocol) fn number(self, number: impl Into<u64>) -> Self {
        self.word(Word::Number(number.into()))
    }

    /// Adds the limit of permits. A lock has none.
    pub(in crate::protocol) fn limit(self, limit: Option<u32>) -> Self {
        limit.into_iter().fold(self, Self::number)
    }

    pub(in crate::protocol) fn millis(self, duration: Duration) -> Self {
        self.word(Word::Number(millis(duration)))
    }

    pub(in crate::protocol) fn nanos(self, duration: Duration) -> Self {
        self.word(Word::Number(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Adds whether to queue up, and where.
    pub(in crate::protocol) fn mode(self, wait: bool, claim: Claim) -> Self {
        self.text(match wait {
            true if claim.goes_first() => "first",
            true => "wait",
            false => "try",
        })
    }

    /// Adds the end of the queue to which the ticket is nearer.
    pub(in crate::protocol) fn end(self, tail: bool) -> Self {
        self.text(if tail { "-1" } else { "1" })
    }

    pub(in crate::protocol) fn site(self, site: Site<'a>) -> Self {
        self.inbox(site).number(site.counts_everyone)
    }

    /// Adds the prefix of the inboxes that receive messages about the keys.
    pub(in crate::protocol) fn inbox(self, site: Site<'a>) -> Self {
        match site.slot {
            Some(slot) => self.word(Word::Spelled(inbox_prefix_in(site.inbox_prefix, slot))),
            None => self.text(site.inbox_prefix),
        }
    }

    /// Adds the ticket that a release queues up, and says where its messages to the caller's client go.
    pub(in crate::protocol) fn next(self, site: Site<'a>, next: Option<(Ticket, Duration)>) -> Self {
        let call = match next {
            Some((ticket, ttl)) => self.ticket(&ticket).millis(ttl),
            None => self.text("").millis(Duration::ZERO),
        };
        call.number(site.listens)
    }

    /// Adds one group of arguments per ticket, and expects one entry per ticket in the reply.
    pub(in crate::protocol) fn tickets(self, tickets: &[(Ticket, Duration)]) -> Self {
        self.each(tickets, |call, (ticket, ttl)| call.ticket(ticket).millis(*ttl))
    }

    /// Adds one group of arguments per entry, and expects as many entries in the reply.
    pub(in crate::protocol) fn each<I>(
        self,
        entries: impl IntoIterator<Item = I>,
        add: impl Fn(Self, I) -> Self,
    ) -> Self {
        entries.into_iter().fold(self, |mut call, entry| {
            call.entries += 1;
            add(call, entry)
        })
    }

    fn word(mut self, word: Word<'a>) -> Self {
        self.args.push(word);
        self
    }
}

/// Redis counts in whole milliseconds. A duration above zero never becomes 0, which would delete a key.
fn millis(duration: Duration) -> u64 {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if millis == 0 && !duration.is_zero() { 1 } else { millis }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_never_becomes_the_zero_that_would_delete() {
        assert_eq!(millis(Duration::from_nanos(1)), 1);
        assert_eq!(millis(Duration::from_micros(1_999)), 1);
        assert_eq!(millis(Duration::ZERO), 0);
        assert_eq!(millis(Duration::MAX), u64::MAX);
    }
}
