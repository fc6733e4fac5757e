//! Keys that stay when nobody holds or waits any more, until they expire.

/// Whether the key remembers the past: a counter of fencing tokens, or the changes of an election.
pub fn is_memory(key: &str) -> bool {
    key.ends_with(":fence") || key.ends_with(":changes")
}
