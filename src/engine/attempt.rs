//! One attempt, as the engine knows it until it is decided.

use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::engine::cleanups::Cleanup;
use crate::engine::lease::Hold;
use crate::mutant::{self, Mutant};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::dispatch::Failure;
use crate::protocol::key::Keys;
use crate::protocol::reply::ServerMillis;
use crate::protocol::ticket::Ticket;
use crate::protocol::token::Token;

/// What became of an attempt that waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is granted. Its lease is counted from `counted_from`, which is not later than the grant.
    Granted { token: Token, counted_from: Instant },
    /// The server no longer knows it.
    Gone,
    /// The server gave no usable answer for too long, or refused.
    Failed(Failure),
    /// The client was closed.
    Closed,
}

/// What the answer "queued" said about an attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    /// When the answered request was sent.
    pub(crate) sent: Instant,
    /// How many requests about the attempt were sent.
    pub(crate) asked: u32,
    /// What is left of the lease that the attempt waits for.
    pub(crate) holder_left: Option<Duration>,
    /// The script did not finish, and is to be called again.
    pub(crate) call_again: bool,
}

#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) keys: Arc<Keys>,
    /// Units, or tokens to reserve.
    pub(super) amount: u32,
    pub(super) lease: Duration,
    /// When the last request was sent that the server answered with "waiting": no grant can be older.
    pub(super) counted_from: Instant,
    pub(super) queued_at: Option<Instant>,
    /// The server's time when the ticket was last known to wait: no grant of this ticket is older.
    pub(super) waiting_at: ServerMillis,
    /// The member of a cohort that asks for it.
    pub(super) member: Option<u64>,
    /// How many requests had been sent when it was queued.
    pub(super) asked: u32,
    /// The hold that its first request releases.
    pub(super) before: Option<Arc<Hold>>,
    /// When the first heartbeat without an answer was sent, since the last one with an answer.
    pub(super) unanswered_since: Option<Instant>,
    pub(super) revoked: bool,
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
            unanswered_since: None,
            revoked: false,
            outcome: None,
            waker: None,
        }
    }

    /// The answer to a request sent at `sent` was that its ticket waits, at this time of the server's clock.
    pub(super) fn set_waiting(&mut self, sent: Instant, server: ServerMillis) {
        if mutant::on(Mutant::LeaseFromFirstRequest) {
            return;
        }
        self.counted_from = sent;
        self.waiting_at = server;
    }

    /// Whether a grant of that time belongs to an earlier ticket of the same attempt id, which a second copy of the request has
    /// queued anew. A grant of the same millisecond does not: a lease lies between the two.
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
        Cleanup { ticket: self.ticket(id), keys: self.keys, from_tail, until: now + self.lease }
    }
}
