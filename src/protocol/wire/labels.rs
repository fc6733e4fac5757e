//! The labels of clients.

use std::time::Duration;

use uuid::Uuid;

use super::{Request, sent};
use crate::protocol::client;
use crate::protocol::key::Named;

/// Stores the label of a client, or removes it if `ttl` is zero. 0 for `not_after`, in server ms, is no limit.
pub fn store_label(prefix: &str, client: Uuid, ttl: Duration, not_after: u64, label: &str) -> Request {
    sent(client::store_label(&Named::labels(prefix), client, (ttl, not_after), label))
}

/// Reads the labels of clients.
pub fn read_labels(prefix: &str, clients: &[Uuid]) -> Request {
    sent(client::read_labels(&Named::labels(prefix), clients))
}
