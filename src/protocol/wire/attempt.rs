//! What tests and benches say of an attempt, or of one copy of a call.

use std::time::Duration;

use uuid::Uuid;

use super::super::attempt_id::AttemptId;
use super::super::copy::CallCopy;

/// An acquisition attempt.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// The client's id.
    pub client: Uuid,
    /// The attempt's number.
    pub n: u64,
    /// The lease of its hold.
    pub lease: Duration,
    /// The tokens of a lock, or the units of permits.
    pub amount: u32,
    /// The time its ticket lives.
    pub ticket_ttl: Duration,
    /// The most waiters. 0 is no limit.
    pub max_waiters: u32,
    /// The latest time of execution in ms, by the server's clock. 0 is no limit.
    pub not_after: u64,
    /// Whether the client keeps the hold until another one asks for it.
    pub retained: bool,
}

/// One copy of a call that changes a latch, a barrier or a counter that Java shares.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    /// The client's id.
    pub client: Uuid,
    /// The call's number.
    pub n: u64,
    /// The server refuses this copy after that time.
    pub not_after: u64,
    /// After this time no copy is executed.
    pub known_until: u64,
    /// Whether another copy may have been executed.
    pub resent: bool,
}

impl Attempt {
    /// The client's n-th attempt, for one token or unit and without limits. Its ticket lives as long as its hold.
    pub fn new(client: Uuid, n: u64, lease: Duration) -> Self {
        Self { client, n, lease, amount: 1, ticket_ttl: lease, max_waiters: 0, not_after: 0, retained: false }
    }

    /// The attempt id.
    pub fn id(self) -> String {
        id(self).text()
    }
}

impl Copy {
    pub(super) fn call(self) -> CallCopy {
        let Self { client, n, not_after, known_until, resent } = self;
        CallCopy { id: AttemptId { client, n }, not_after, known_until, resent }
    }
}

pub(super) fn id(attempt: Attempt) -> AttemptId {
    let id = AttemptId { client: attempt.client, n: attempt.n };
    if attempt.retained { id.retained() } else { id }
}
