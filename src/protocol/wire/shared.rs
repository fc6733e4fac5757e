//! Values that scripts and tests share.

use uuid::Uuid;

use crate::protocol::key::{self, inbox_prefix};

/// The prefix of clients whose configuration names no other.
pub const PREFIX: &str = key::DEFAULT_PREFIX;

/// A client id for a test.
pub fn client(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

/// The channel on which a client receives messages about its grants.
pub fn inbox(prefix: &str, client: Uuid) -> String {
    key::inbox(&inbox_prefix(prefix), None, client)
}
