//! What is asked of the server, whatever the primitive: the kind of the keys decides which script does it.

use std::time::Duration;

use crate::connection::{Arg, Connection, ConnectionError};
use crate::error::ErrorKind;
use crate::key::{Keys, Kind};
use crate::scripts::lock::LockScripts;
use crate::scripts::permit::PermitScripts;
use crate::scripts::reply::{Acquired, Cancelled, Released, Renewed, ServerMillis, Touched, UnexpectedReply};

/// Why a script has no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    #[error(transparent)]
    Reply(#[from] UnexpectedReply),
}

impl Failure {
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
    pub(crate) wire_id: &'a str,
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
pub(crate) type TouchArgs<'a> = (&'a str, Duration);

/// One hold to renew: its keys, wire id, lease. A lease of zero looks without renewing.
pub(crate) type RenewArgs<'a> = (&'a Keys, &'a str, Duration);

/// A connection, and the arguments that are the same in every call a client makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scripts<'a> {
    pub(crate) connection: &'a dyn Connection,
    pub(crate) inbox_prefix: &'a str,
}

impl<'a> Scripts<'a> {
    pub(crate) fn lock(self) -> LockScripts<'a> {
        LockScripts { connection: self.connection, inbox_prefix: self.inbox_prefix }
    }

    pub(crate) fn permits(self, limit: u32) -> PermitScripts<'a> {
        PermitScripts { connection: self.connection, inbox_prefix: self.inbox_prefix, limit }
    }

    pub(crate) async fn acquire(self, keys: &Keys, args: AcquireArgs<'_>) -> Result<Acquired, Failure> {
        match keys.kind.limit() {
            None => self.lock().acquire(keys, args).await,
            Some(limit) => self.permits(limit).acquire(keys, args).await,
        }
    }

    pub(crate) async fn release(self, keys: &Keys, wire_id: &str) -> Result<Released, Failure> {
        match keys.kind.limit() {
            None => self.lock().release(keys, wire_id).await,
            Some(limit) => self.permits(limit).release(keys, wire_id).await,
        }
    }

    pub(crate) async fn cancel(self, keys: &Keys, ticket: &str, from_tail: bool) -> Result<Cancelled, Failure> {
        match keys.kind.limit() {
            None => self.lock().cancel(keys, ticket, from_tail).await,
            Some(limit) => self.permits(limit).cancel(keys, ticket, from_tail).await,
        }
    }

    pub(crate) async fn touch(self, keys: &Keys, tickets: &[TouchArgs<'_>]) -> Result<Touched, Failure> {
        match keys.kind.limit() {
            None => self.lock().touch(keys, tickets).await,
            Some(limit) => self.permits(limit).touch(keys, tickets).await,
        }
    }

    /// All of them locks, or none.
    pub(crate) async fn renew(self, kind: Kind, holds: &[RenewArgs<'_>]) -> Result<Renewed, Failure> {
        match kind.limit() {
            None => self.lock().renew(holds).await,
            Some(limit) => self.permits(limit).renew(holds).await,
        }
    }
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
