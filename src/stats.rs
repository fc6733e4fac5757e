//! What a client counts.

/// What a client has now, and has done so far: see [`Client::stats`](crate::Client::stats). Meant for a metrics page;
/// the numbers are of one moment, and `reconnects` of one a little later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Holds that it has now: locks, reads, writes and acquisitions of permits. What a [`Holder`](crate::Holder) entered
    /// again is one.
    pub held: u64,
    /// Acquisitions under way now, and those that wait for a latch: sent, waiting in Redis, or in a line of the client.
    pub waiting: u64,
    /// Acquisitions that got what they asked for, and changes between reading and writing.
    pub acquired: u64,
    /// Those of them that got it in a line of the client, without a command.
    pub passed_on: u64,
    /// Leases made longer by the watchdog.
    pub renewals: u64,
    /// Holds that were lost: their lease ran out, the server did not have them any more, or an operator took them. What
    /// [`close`](crate::Client::close) ends is not counted.
    pub lost: u64,
    /// Connections made again after one was lost, that of the subscription included; of a
    /// [`Connection`](crate::Connection) that counts them.
    pub reconnects: u64,
    /// How often the server refused to restore the subscription after a reconnect, for example because the user's right
    /// to the channel is gone. Until it succeeds, waiters find out about a grant only when they ask.
    pub subscriptions_refused: u64,
}
