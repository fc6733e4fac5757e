//! What all typed calls share: how a script is run, why it has no outcome, how durations reach it.

use std::time::Duration;

use crate::connection::refusal::explain;
use crate::connection::{Arg, Call, Connection, ConnectionError, Reply};
use crate::error::{Error, ErrorKind};
use crate::protocol::Script;
use crate::protocol::reply::{ServerMillis, UnexpectedReply};

/// Why a script has no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    #[error(transparent)]
    Reply(#[from] UnexpectedReply),
}

impl Failure {
    /// Whether the script may have been executed to its end.
    pub(crate) fn may_be_done(&self) -> bool {
        matches!(self, Self::Connection(ConnectionError::Unknown(_)) | Self::Reply(_))
    }

    /// What an operation fails with.
    pub(crate) fn into_error(self, operation: &'static str) -> Error {
        let error = Error::new(self.kind(), operation);
        match self {
            Self::Connection(cause) => error.with_source(cause),
            Self::Reply(cause) => error.with_source(cause),
        }
    }

    /// What connecting fails with: the server or the user's rights do not fit.
    pub(crate) fn when_connecting(self, prefix: &str) -> Error {
        let explained = match &self {
            Self::Connection(error) => explain(error, prefix),
            Self::Reply(_) => None,
        };
        let error = self.into_error("connect");
        match explained {
            Some(reason) => error.with_reason(reason),
            None => error,
        }
    }

    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Connection(error) => error.kind(),
            Self::Reply(_) => ErrorKind::Protocol,
        }
    }
}

/// What an acquisition asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AcquireArgs<'a> {
    pub(crate) attempt_id: &'a str,
    /// Whether to queue up if others are in the way.
    pub(crate) wait: bool,
    pub(crate) lease: Duration,
    /// Units of permits, or tokens that a lock reserves.
    pub(crate) amount: u32,
    pub(crate) ticket_ttl: Duration,
    /// 0 is no limit.
    pub(crate) max_waiters: u32,
    pub(crate) not_after: ServerMillis,
}

/// One ticket to touch, with its time to live.
pub(crate) type TicketArgs<'a> = (&'a str, Duration);

pub(super) async fn run(
    connection: &dyn Connection,
    script: &'static Script,
    keys: &[&str],
    args: &[Arg<'_>],
) -> Result<Reply, ConnectionError> {
    connection.run(Call::new(script, keys, args)).await
}

/// As [`run`], for an answer that is of no use after `within`.
pub(super) async fn run_within(
    connection: &dyn Connection,
    script: &'static Script,
    keys: &[&str],
    args: &[Arg<'_>],
    within: Duration,
) -> Result<Reply, ConnectionError> {
    connection.run(Call::new(script, keys, args).within(within)).await
}

pub(super) fn counts_everyone(connection: &dyn Connection) -> Arg<'static> {
    Arg::Number(connection.topology().publish_counts_everyone.into())
}

/// The end of the queue that a ticket is nearer to.
pub(super) fn from(tail: bool) -> Arg<'static> {
    Arg::Text(if tail { "-1" } else { "1" })
}

pub(super) fn mode(wait: bool) -> Arg<'static> {
    Arg::Text(if wait { "wait" } else { "try" })
}

/// Durations reach Redis as whole milliseconds, and never as the 0 that would delete a key, unless they are zero.
pub(super) fn millis(duration: Duration) -> Arg<'static> {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    Arg::Number(if millis == 0 && !duration.is_zero() { 1 } else { millis })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_never_becomes_the_zero_that_would_delete() {
        let shown = |duration| format!("{:?}", millis(duration));
        assert_eq!(shown(Duration::from_nanos(1)), "1");
        assert_eq!(shown(Duration::from_micros(1_999)), "1");
        assert_eq!(shown(Duration::ZERO), "0");
        assert_eq!(shown(Duration::MAX), u64::MAX.to_string());
    }
}
