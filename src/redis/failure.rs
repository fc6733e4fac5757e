//! The reasons why there is no connection, and the errors that callers get.

use std::fmt;
use std::time::Duration;

#[cfg(feature = "redis-1")]
use ::redis::RedisError;

#[cfg(feature = "redis-1")]
use super::convert;
use crate::backoff::Backoff;
use crate::connection::ConnectionError;
use crate::connection::refusal::explain;
use crate::error::{Error, ErrorKind};
use crate::tuning::RENAMED;

/// The reason why there is no connection.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// The socket or the TLS session failed, or no answer came.
    Io(String),
    /// Another server was named meanwhile.
    Left,
    /// The server answered with an error.
    Refused(ConnectionError),
    /// Like `Refused`, with an explanation for the operator of the server.
    Explained(ConnectionError, String),
    /// TLS failed because a certificate was not accepted.
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "only TLS has certificates"))]
    Certificate(String),
    /// The server is of a kind that bowline cannot use.
    Unsupported(String),
    /// The server is a node of a cluster, but the URL is that of a single server.
    Cluster,
    /// The server does not have the database of the URL.
    Invalid(String),
}

impl Failure {
    #[cfg(feature = "redis-1")]
    pub(super) fn of(error: &RedisError) -> Self {
        convert::refused_by_server(error).map_or_else(|| Self::Io(error.to_string()), Self::Refused)
    }

    /// Whether the next attempt may succeed, because it may find another server.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Io(_) | Self::Left => true,
            Self::Refused(refusal) | Self::Explained(refusal, _) => refusal.kind().is_retryable(),
            Self::Certificate(_) | Self::Unsupported(_) | Self::Cluster | Self::Invalid(_) => false,
        }
    }

    /// How long to wait before the next attempt at a connection.
    pub(super) fn pause(&self, backoff: &mut Backoff) -> Duration {
        if matches!(self, Self::Left) { RENAMED } else { backoff.pause() }
    }

    pub(super) fn into_error(self, target: &str, prefix: &str) -> Error {
        let kind = match self {
            Self::Io(_) | Self::Left => ErrorKind::Unavailable,
            Self::Refused(refusal) => {
                let explained = explain(&refusal, prefix).map_or(String::new(), |what| format!(": {what}"));
                let reason = format!("{target}{explained}");
                return Error::because(refusal.kind(), "connect", reason).with_source(refusal);
            }
            Self::Explained(refusal, explained) => {
                let reason = format!("{target}: {explained}");
                return Error::because(refusal.kind(), "connect", reason).with_source(refusal);
            }
            Self::Certificate(_) => ErrorKind::Certificate,
            Self::Unsupported(_) | Self::Cluster => ErrorKind::Unsupported,
            Self::Invalid(_) => ErrorKind::InvalidInput,
        };
        Error::because(kind, "connect", format!("{target}: {self}"))
    }
}

/// The error of a call for which there is no connection.
impl From<Failure> for ConnectionError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(refusal) | Failure::Explained(refusal, _) => refusal,
            Failure::Certificate(reason) => Self::Certificate(reason),
            failure => Self::Unreachable(failure.to_string()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(reason) | Self::Certificate(reason) | Self::Unsupported(reason) | Self::Invalid(reason) => {
                f.write_str(reason)
            }
            Self::Left => f.write_str("another server is the primary now"),
            Self::Cluster => f.write_str("the server is a node of a cluster"),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Explained(refusal, explained) => write!(f, "{explained}: {refusal}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuning::RECONNECT;

    #[test]
    fn a_server_that_was_named_meanwhile_is_dialled_without_the_pauses_of_the_one_before() {
        let mut backoff = Backoff::new(RECONNECT, 1);
        let mut pauses = || [Failure::Io(String::new()), Failure::Left].map(|failure| failure.pause(&mut backoff));
        let [grown, after] = (0..8).map(|_| pauses()).last().unwrap();
        assert!(grown > 20 * RENAMED, "{grown:?}");
        assert_eq!(after, RENAMED);
    }
}
