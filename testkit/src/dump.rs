//! What a server stores, as one script reads it.

/// A script that replies every key with its type, value and expiry.
pub const DUMP: &str = include_str!("dump.lua");
