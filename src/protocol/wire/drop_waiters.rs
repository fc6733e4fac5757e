//! Dropping waiters.

use uuid::Uuid;

use super::{Request, Resource, sent};
use crate::protocol::dispatch::DropArgs;

impl Resource {
    /// Drops the tickets of a client, or of all. `None` for what is never held.
    pub fn drop_waiters(&self, client: Option<Uuid>, first: u64, not_after: u64) -> Option<Request> {
        let args = DropArgs { client, first, not_after };
        self.keys.kind.with(|kind| kind.held().map(|held| sent(held.drop_waiters(&self.keys, self.site(), args))))
    }
}
