//! The only place that spells tickets.

use std::time::Duration;

use super::attempt_id::AttemptId;
use super::limits::MAX_TICKET_TTL;

/// A place in a queue: the attempt, and what its grant will be, so that a release can grant it without a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) id: AttemptId,
    pub(crate) lease: Duration,
    pub(crate) claim: Claim,
}

/// What a ticket asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The lock, with that many fencing tokens reserved.
    Tokens(u32),
    /// Permits. The ticket carries the limit of its call site, because the client that releases may have another.
    Units { units: u32, limit: u32 },
    /// Nothing that could be held: the ticket of a latch is the attempt id alone.
    Nothing,
}

impl Claim {
    /// Tokens or units.
    pub(super) fn amount(self) -> u32 {
        match self {
            Self::Tokens(tokens) => tokens,
            Self::Units { units, .. } => units,
            Self::Nothing => 0,
        }
    }
}

impl Ticket {
    pub(crate) fn text(&self) -> String {
        let (id, lease) = (self.id.text(), self.lease.as_millis());
        match self.claim {
            Claim::Tokens(tokens) => format!("{id}/{lease}/{tokens}"),
            Claim::Units { units, limit } => format!("{id}/{lease}/{units}/{limit}"),
            Claim::Nothing => id,
        }
    }

    /// How long the ticket lives without a heartbeat.
    pub(crate) fn ttl(&self) -> Duration {
        ticket_ttl(self.lease)
    }
}

/// How long a ticket lives without a heartbeat. Never longer than the lease of its grant: so no grant comes after the lease,
/// counted from the last sign of life, has expired.
pub(crate) fn ticket_ttl(lease: Duration) -> Duration {
    lease.min(MAX_TICKET_TTL)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn spelling() {
        let id = AttemptId { client: Uuid::from_u128(7), n: 12 };
        let text = |claim| Ticket { id, lease: Duration::from_millis(1500), claim }.text();
        assert_eq!(text(Claim::Tokens(2)), "00000000-0000-0000-0000-000000000007:12/1500/2");
        assert_eq!(text(Claim::Units { units: 2, limit: 5 }), "00000000-0000-0000-0000-000000000007:12/1500/2/5");
        assert_eq!(text(Claim::Nothing), id.text());
    }

    #[test]
    fn a_ticket_never_outlives_the_lease_it_asks_for() {
        for seconds in [1, 30, 1800, 86_400] {
            let lease = Duration::from_secs(seconds);
            assert!(ticket_ttl(lease) <= lease.min(Duration::from_secs(1800)));
        }
    }
}
