//! Values that scripts and tests share.

use crate::protocol::key;

/// The prefix of clients whose configuration names no other.
pub const PREFIX: &str = key::DEFAULT_PREFIX;
