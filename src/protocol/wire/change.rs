//! Holds of permits that become others.

use super::{Attempt, Request, Resource, id, sent};
use crate::protocol::change::ChangeArgs;

impl Resource {
    /// Exchanges a hold of permits for another one.
    pub fn change(&self, old: Attempt, new: Attempt) -> Request {
        self.change_both(old, None, new)
    }

    /// Exchanges two holds of permits for another one.
    pub fn change_both(&self, old: Attempt, rest: Option<Attempt>, new: Attempt) -> Request {
        let Attempt { amount: units, lease, not_after, .. } = new;
        let args = ChangeArgs { old: id(old), rest: rest.map(id), new: id(new), units, lease, not_after };
        sent(self.permits().change(&self.keys, self.site(), args))
    }
}
