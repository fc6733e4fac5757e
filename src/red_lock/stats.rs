//! The counters of a RedLock.

/// The counters of a [`RedLock`](crate::RedLock), for metrics: see [`RedLock::stats`](crate::RedLock::stats).
///
/// `held` and `masters_down` are current values. The others count since the `RedLock` was made. The clients of the
/// masters count the turns and the votes as holds of their own: see [`Client::stats`](crate::Client::stats).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
#[non_exhaustive]
pub struct RedLockStats {
    /// Current holds.
    pub held: u64,
    /// Granted acquisitions.
    pub acquired: u64,
    /// Lost holds.
    pub lost: u64,
    /// Second rounds, because masters had seen a larger token than the proposed one.
    pub second_rounds: u64,
    /// Rounds without a majority, because other holds were in the way. After the first one, an acquisition only looks
    /// whether a majority of the masters is free, and each look counts as a round.
    pub contested_rounds: u64,
    /// Rounds without a majority, because too few masters answered, or too few of those have been up for the longest
    /// lease.
    pub failed_rounds: u64,
    /// Votes that masters gave to a hold after its grant, because they had lost the hold, or had refused or not
    /// answered before.
    pub votes_regained: u64,
    /// The masters that do not answer at present, or refuse writes.
    pub masters_down: usize,
}
