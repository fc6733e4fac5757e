//! What is told of a lock that Java programs share.

use std::time::Duration;

/// The state of a lock that Java programs share, as read by [`RedissonLock::inspect`](crate::RedissonLock::inspect).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct RedissonLockState {
    /// The holder, or `None` if the lock is free.
    pub holder: Option<RedissonOwner>,
}

/// The holder of a lock that Java programs share.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct RedissonOwner {
    /// As it is stored: `<id of the Redisson client>:<id of the thread>`, or `<id of the bowline client>:<n>`.
    pub owner: String,
    /// How often the owner has entered. A guard of bowline counts its own re-entries and stores 1.
    pub entries: u64,
    /// The rest of the lease. `None` if the lock does not expire, which no program intends.
    #[cfg_attr(feature = "serde", serde(with = "crate::duration_text::optional", default))]
    pub remaining: Option<Duration>,
}
