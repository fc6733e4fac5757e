//! Holds of permits that become others.

use super::{Attempt, Request, Resource, id, sent};
use crate::protocol::change::ChangeArgs;
use crate::protocol::token::Token;

impl Resource {
    /// Exchanges a hold of permits for another one.
    pub fn change(&self, old: Attempt, new: Attempt) -> Request {
        self.change_both(old, None, new, None)
    }

    /// Exchanges two holds of permits for another one. `token`: that of the old hold's guard.
    pub fn change_both(&self, old: Attempt, rest: Option<Attempt>, new: Attempt, token: Option<u64>) -> Request {
        let Attempt { amount: units, lease, not_after, .. } = new;
        let args = ChangeArgs {
            old: id(old),
            rest: rest.map(id),
            new: id(new),
            units,
            lease,
            not_after,
            token: token.map(Token::new),
        };
        sent(self.permits().change(&self.keys, self.site(), args))
    }
}
