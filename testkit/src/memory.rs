//! Keys that stay when nobody holds or waits any more, until they expire.

/// Whether the key remembers the past: a counter of fencing tokens, Redisson's too, the changes of an election, how the
/// generations of a barrier have ended, or what was taken from a rate limiter.
pub fn is_memory(key: &str) -> bool {
    let of_barrier = [":barrier:{", ":entry:{", ":double:{"].iter().any(|kind| key.contains(kind));
    let of_barrier = of_barrier && !key.ends_with(":tickets");
    of_barrier
        || key.starts_with("redisson_lock_token:")
        || [":fence", ":changes", ":tat"].iter().any(|end| key.ends_with(end))
}
