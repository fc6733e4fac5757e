//! One attempt, as the engine sees it until its outcome is known.

use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::engine::cleanup::Cleanup;
use crate::engine::lease::{Hold, deadline};
use crate::mutant::{self, Mutant};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::dispatch::Failure;
use crate::protocol::key::Keys;
use crate::protocol::kind::Kind;
use crate::protocol::reply::ServerMillis;
use crate::protocol::ticket::{Ticket, ticket_ttl};
use crate::protocol::token::Token;

/// The outcome of an attempt that waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The attempt was granted. Its lease is counted from `counted_from`, which is not later than the grant.
    Granted { token: Token, counted_from: Instant },
    /// The server has no ticket of the attempt any more.
    Gone,
    /// The server has given no usable answer since then, or refused. Boxed, because each waiting attempt has room for
    /// an outcome.
    Failed(Box<Failure>, Instant),
    /// The client was closed.
    Closed,
}

/// What the answer "queued" says about an attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    /// When the answered request was sent.
    pub(crate) sent: Instant,
    /// How many requests about the attempt were sent.
    pub(crate) asked: u32,
    /// The rest of the lease of the hold that the attempt waits for.
    pub(crate) holder_left: Option<Duration>,
    /// Whether the script must be called again to finish.
    pub(crate) call_again: bool,
}

/// The heartbeats of an attempt that the server does not answer.
#[derive(Clone, Debug)]
pub(super) struct Unanswered {
    /// When the first of them was sent.
    pub(super) since: Instant,
    /// When the attempt fails, unless one is answered before.
    pub(super) give_up: Instant,
    /// Why the last one failed.
    pub(super) last: Failure,
}

#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) keys: Arc<Keys>,
    /// The number of units, or of tokens to reserve.
    pub(super) amount: u32,
    pub(super) lease: Duration,
    /// When the last request was sent that the server answered with "waiting". No grant can be older.
    pub(super) counted_from: Instant,
    pub(super) queued_at: Option<Instant>,
    /// The server's time when the ticket was last known to wait: no grant of this ticket is older.
    pub(super) waiting_at: ServerMillis,
    /// The member of a cohort that made the attempt, if one did.
    pub(super) member: Option<u64>,
    /// How many requests had been sent when it was queued.
    pub(super) asked: u32,
    /// The hold that the first request of the attempt releases.
    pub(super) before: Option<Arc<Hold>>,
    /// The heartbeats without an answer since the last one with an answer, if there are any. Boxed, because they are
    /// rare.
    pub(super) unanswered: Option<Box<Unanswered>>,
    /// The last request was sent over the connection for calls that wait for this many replicas, and was not answered.
    /// Later requests use the same connection, because on another one they might overtake it. 0 is the connection for
    /// all other calls.
    pub(super) waits_with: u32,
    pub(super) revoked: bool,
    /// Whether the hold will be retained.
    pub(super) is_retained: bool,
    /// Whether others wait for the hold that the attempt became, as far as messages have said so before the answer.
    pub(super) wanted: bool,
    /// Whether somebody has asked the holder to release, as far as messages have said so before the answer.
    pub(super) is_asked_for: bool,
    pub(super) outcome: Option<Outcome>,
    pub(super) waker: Option<Waker>,
}

impl Attempt {
    pub(super) fn new(keys: &Arc<Keys>, amount: u32, lease: Duration, now: Instant) -> Self {
        Self {
            keys: keys.clone(),
            amount,
            lease,
            counted_from: now,
            queued_at: None,
            waiting_at: 0,
            member: None,
            asked: 0,
            before: None,
            unanswered: None,
            waits_with: 0,
            revoked: false,
            is_retained: false,
            wanted: false,
            is_asked_for: false,
            outcome: None,
            waker: None,
        }
    }

    /// Whether somebody counts on the lease of the ticket, as on that of a hold.
    fn has_lease(&self) -> bool {
        matches!(self.keys.kind, Kind::Inside { .. })
    }

    /// The end of the lease, if the ticket has one. As the lease of a hold, it counts from the last request that was
    /// answered.
    pub(super) fn lease_ends(&self) -> Option<Instant> {
        self.has_lease().then(|| deadline(self.counted_from, ticket_ttl(self.lease)))
    }

    /// When the ticket fails, if the server has answered no heartbeat since `since` and goes on like that.
    pub(super) fn give_up(&self, since: Instant, failure: &Failure, retry_timeout: Duration) -> Instant {
        let lease_ends = self.lease_ends().filter(|_| failure.kind().is_retryable());
        (since + retry_timeout).max(lease_ends.unwrap_or(since))
    }

    /// Records that the server answered a request sent at `sent` with "waiting", when its clock showed `server`.
    pub(super) fn set_waiting(&mut self, sent: Instant, server: ServerMillis) {
        if mutant::on(Mutant::LeaseFromFirstRequest) {
            return;
        }
        self.counted_from = sent;
        self.waiting_at = server;
    }

    /// Whether a grant made at this time belongs to an earlier ticket of the same attempt id. A second copy of the
    /// request has queued up again since. A grant in the same millisecond is not outdated, because at least one lease
    /// lies between the two grants.
    pub(super) fn is_outdated(&self, granted_at: ServerMillis) -> bool {
        if mutant::on(Mutant::GrantTrustedAfterResend) {
            return false;
        }
        granted_at < self.waiting_at
    }

    pub(super) fn ticket(&self, id: AttemptId) -> Ticket {
        self.keys.kind.ticket(id, self.lease, self.amount)
    }

    pub(super) fn into_cleanup(self, id: AttemptId, from_tail: bool, now: Instant) -> Cleanup {
        let (ticket, behind) = (self.ticket(id), self.waits_with);
        Cleanup { from_tail, behind, ..Cleanup::new(self.keys, ticket, now + self.lease) }
    }
}
