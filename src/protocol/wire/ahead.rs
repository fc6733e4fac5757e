//! The request for the next hand-off budget.

use super::{Attempt, Request, Resource, id, sent};
use crate::protocol::resource::AheadArgs;
use crate::protocol::token::Token;

impl Resource {
    /// Asks for the next hand-off budget of a hold, or queues up if others wait. `None` for a resource without such a
    /// script.
    pub fn ask_ahead(&self, attempt: Attempt, known: u64, next: Attempt) -> Option<Request> {
        let (ticket, not_after) = (self.ticket_of(next), next.not_after);
        let args = AheadArgs { held: id(attempt), known: Token::new(known), ticket, not_after };
        self.keys.kind.with(|resource| resource.held()?.ask_ahead(&self.keys, args).map(sent))
    }
}
