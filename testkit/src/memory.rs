//! Keys that stay when nobody holds or waits any more, until they expire.

/// Whether the key remembers the past: a counter of fencing tokens, Redisson's too, the changes of an election, how the
/// generations of a barrier have ended, what was taken from a rate limiter, or which calls have changed a counter.
pub fn is_memory(key: &str) -> bool {
    let of_barrier = [":barrier:{", ":entry:{", ":double:{"].iter().any(|kind| key.contains(kind));
    let of_barrier = of_barrier && !key.ends_with(":tickets");
    of_barrier
        || key.starts_with("redisson_lock_token:")
        || key.contains(":call:{")
        || [":fence", ":changes", ":tat"].iter().any(|end| key.ends_with(end))
}

/// Whether the key has no TTL, because Redisson gives it none: a counter of fenced locks, and a latch or a semaphore
/// with its leases, whose names in tests begin with `java:`.
pub fn is_forever(key: &str) -> bool {
    ["redisson_lock_token:", "java:", "{java:"].iter().any(|start| key.starts_with(start))
}
