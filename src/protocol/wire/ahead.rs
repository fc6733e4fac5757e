//! What follows a hold: the next hand-off budget, and the attempt that takes the hold over.

use super::{Attempt, Request, Resource, id, sent};
use crate::protocol::mutex;
use crate::protocol::resource::{AheadArgs, Place};
use crate::protocol::token::Token;

impl Resource {
    /// Asks for the next hand-off budget of a hold, for so many guards, or queues up if others wait. `None` for a
    /// resource without such a script.
    pub fn ask_ahead(&self, attempt: Attempt, known: u64, budget: u32, next: Attempt) -> Option<Request> {
        let (place, not_after) = (Place::Next(self.ticket_of(next)), next.not_after);
        self.ahead(AheadArgs {
            held: id(attempt),
            known: Token::new(known),
            lease: next.lease,
            budget,
            place,
            not_after,
        })
    }

    /// The same for a cohort that has these tickets in the queue.
    pub fn go_on(&self, attempt: Attempt, own: &[Attempt]) -> Option<Request> {
        let own: Vec<_> = own.iter().map(|own| self.ticket_of(*own)).collect();
        let (known, place) = (Token::NONE, Place::Has(&own));
        self.ahead(AheadArgs { held: id(attempt), known, lease: attempt.lease, budget: 1, place, not_after: 0 })
    }

    fn ahead(&self, args: AheadArgs<'_>) -> Option<Request> {
        self.keys.kind.with(|resource| resource.held()?.ask_ahead(&self.keys, args).map(sent))
    }

    /// Gives the hold of one attempt of a lock to another one.
    pub fn resume(&self, old: Attempt, new: Attempt) -> Request {
        sent(mutex::resume(&self.keys, id(old), (self.ticket_of(new), new.not_after)))
    }
}
