//! What is done about the waiters and the holders of others.

use uuid::Uuid;

use super::{Attempt, Request, Resource, id, sent};
use crate::protocol::client;
use crate::protocol::dispatch::DropArgs;

impl Resource {
    /// Drops the tickets of a client, or of all. `None` for what is never held.
    pub fn drop_waiters(&self, client: Option<Uuid>, first: u64, not_after: u64) -> Option<Request> {
        let args = DropArgs { client, first, not_after };
        self.keys
            .kind
            .with(|kind| kind.held().and_then(|held| held.drop_waiters(&self.keys, self.site(), args)).map(sent))
    }

    /// Asks the clients of holds to release them.
    pub fn ask(&self, holds: &[Attempt]) -> Request {
        let ids: Vec<_> = holds.iter().map(|hold| id(*hold)).collect();
        sent(client::ask(&self.keys, &self.inbox_prefix, &ids))
    }
}
