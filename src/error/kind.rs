//! What kinds of errors there are.

use std::fmt;

/// The kind of an [`Error`](crate::Error), for code to match on.
///
/// Later versions may add kinds, so a `match` needs a wildcard arm. [`is_retryable`](Self::is_retryable) classifies
/// every kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument, a name, a duration or a URL is invalid, or a blocking call was made on a thread that may not block.
    /// Nothing was acquired.
    InvalidInput,
    /// The `timeout` of the operation passed before a grant or an answer arrived, or would pass before permits of a
    /// [rate limiter](crate::UntilReady) are free. The request is cancelled in the
    /// background, which can take some more milliseconds. If there was no connection, or the last request failed, the
    /// source of the error says why.
    TimedOut,
    /// As many others as `max_waiters` allows wait already.
    QueueFull,
    /// An operator has taken the acquisition out of the queue ([`Lock::drop_waiters`](crate::Lock::drop_waiters)).
    Dropped,
    /// The request is for more permits than the limit of the semaphore, or than the burst of the rate limiter.
    OverLimit,
    /// The caller would wait for itself: its holder already reads and asks to write, its holder already holds what it
    /// asks for and [re-entry is denied](crate::Acquire::deny_reentry), a guard that
    /// [upgrades](crate::UpgradableGuard::upgrade) shares its hold, or one acquisition of several names asks to
    /// read and to write the same one.
    WouldDeadlock,
    /// The lease ended: Redis dropped the hold, granted it to another holder, or may have done so. For a latch: it
    /// ended, and may not have been counted down. For a party at a barrier: the server has lost the barrier.
    Lost,
    /// The generation of a [`Barrier`](crate::Barrier) or a [`DoubleBarrier`](crate::DoubleBarrier) was broken: a party
    /// stopped waiting or dropped its [`Inside`](crate::Inside), its lease ended, or an operator
    /// [reset](crate::Barrier::reset) the barrier. The message says which.
    Broken,
    /// Fewer replicas than [asked for](crate::ConfigBuilder::acknowledged_by) acknowledged the grant in time. It is
    /// released in the background.
    Unacknowledged,
    /// There is no connection to the server, or the server gave no answer in time. The last request may or may not have
    /// been executed. Its effects are cleaned up in the background or end with their lease.
    ///
    /// When connecting, the message tells apart a name that was not resolved, a refused connection, an address that did
    /// not answer, and a connection that broke.
    Unavailable,
    /// The server refused the request for a reason that can pass, such as `LOADING`, `BUSY`, `READONLY` or `OOM`.
    Refused,
    /// The user lacks a right or could not log in. When connecting, the message names the missing right.
    Denied,
    /// TLS failed. The server's certificate is expired, is for another name, or is signed by an authority that this
    /// system does not trust, or the server requires a client certificate.
    Certificate,
    /// The key holds a value of another type, which bowline did not write.
    WrongType,
    /// The server is too old, lacks a command, or is not Redis; or only one side of the connection uses TLS; or the
    /// operation is not offered over this kind of connection, or by a [`RedLock`](crate::RedLock).
    Unsupported,
    /// The server sent a reply that no script of bowline produces.
    Protocol,
    /// The client was closed, or its runtime was shut down.
    Closed,
    /// The masters of a [`RedLock`](crate::RedLock) have voted for programs that know [another set of
    /// masters](crate::RedLockBuilder::masters_version), of which a majority need not share a master with one of this
    /// set. The message names both.
    OtherMasters,
    /// Those that wait at the [`Barrier`](crate::Barrier) are of another number of parties. Of a
    /// [`DoubleBarrier`](crate::DoubleBarrier) also: a whole generation is inside, and has not left yet. That passes,
    /// although [`is_retryable`](crate::Error::is_retryable) returns `false`.
    OtherParties,
    /// Another client is connected with the same [`client_id`](crate::ConfigBuilder::client_id), or the server has not
    /// yet noticed that its connection is closed.
    ClientIdInUse,
}

impl ErrorKind {
    /// Whether the same call can succeed later without a change to the program or to the server's setup.
    ///
    /// To retry after [`Lost`](Self::Lost), acquire again and redo the work with the new token.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::TimedOut
            | Self::QueueFull
            | Self::Dropped
            | Self::Lost
            | Self::Broken
            | Self::Unacknowledged
            | Self::Unavailable
            | Self::Refused
            | Self::ClientIdInUse => true,
            Self::InvalidInput
            | Self::OverLimit
            | Self::WouldDeadlock
            | Self::Denied
            | Self::Certificate
            | Self::WrongType
            | Self::Unsupported
            | Self::Protocol
            | Self::Closed
            | Self::OtherMasters
            | Self::OtherParties => false,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::InvalidInput => "invalid input",
            Self::TimedOut => "timed out",
            Self::QueueFull => "the queue is full",
            Self::Dropped => "dropped from the queue",
            Self::OverLimit => "more permits than the limit",
            Self::WouldDeadlock => "would deadlock",
            Self::Lost => "the lease was lost",
            Self::Broken => "the barrier is broken",
            Self::Unacknowledged => "too few replicas acknowledged it",
            Self::Unavailable => "the server is unavailable",
            Self::Refused => "the server refused",
            Self::Denied => "the server denied access",
            Self::Certificate => "TLS failed",
            Self::WrongType => "the key holds a value of another type",
            Self::Unsupported => "this is not supported",
            Self::Protocol => "unexpected reply",
            Self::Closed => "the client is closed",
            Self::OtherMasters => "another set of masters is in use",
            Self::OtherParties => "the barrier has another number of parties",
            Self::ClientIdInUse => "another connected client has this id",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
