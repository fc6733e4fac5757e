//! The counters of a client.

/// The counters of a client, for metrics: see [`Client::stats`](crate::Client::stats).
///
/// `held` and `waiting` are current values. The others count since the client was connected. All are read at the same
/// moment, except `reconnects`, which is read shortly after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
#[non_exhaustive]
pub struct Stats {
    /// Current holds: locks, reads, writes and acquisitions of permits. An idle [retained](crate::Acquire::retained)
    /// hold is not counted. Several guards of one [`Holder`](crate::Holder) that share a hold count once.
    pub held: u64,
    /// Current acquisitions, waits for latches and barriers, parties of double barriers, and waits of streams for the
    /// next [change of an election](crate::Election::changes): those whose request is sent, those queued in Redis, and
    /// the waiting members of [cohorts](crate::Acquire::non_fair). A party counts twice while it waits to enter a
    /// double barrier. Waits for permits of a rate limiter, and for latches and plain semaphores that Java shares, are
    /// not counted.
    pub waiting: u64,
    /// Granted acquisitions, and changes between reading and writing. An [upgrade](crate::UpgradableGuard::upgrade)
    /// that waits counts three times: it tries, acquires what it lacks, and makes both one hold. An acquisition that
    /// [waits for replicas](crate::ConfigBuilder::acknowledged_by) counts once they have acknowledged it.
    pub acquired: u64,
    /// Acquisitions that were granted by a hand-off within a [cohort](crate::Acquire::non_fair), without a command.
    /// They are also counted in `acquired`.
    pub passed_on: u64,
    /// Acquisitions that were granted by a [retained](crate::Acquire::retained) hold of this client, without a command.
    /// They are also counted in `acquired`, and not in `passed_on`.
    pub retained: u64,
    /// Leases that the watchdog has renewed.
    pub renewals: u64,
    /// Lost holds: their lease expired, the server no longer had them, or an operator released them. Holds that
    /// [`close`](crate::Client::close) ends are not counted.
    pub lost: u64,
    /// Connections that were restored after a loss, including that of the subscription. Always zero if the
    /// [`Connection`](crate::Connection) does not count them.
    pub reconnects: u64,
    /// How often the server refused to restore the subscription after a reconnect, for example because the user lost
    /// its right to the channel. Until the subscription is restored, waiters learn of a grant only by their heartbeats.
    pub subscriptions_refused: u64,
}
