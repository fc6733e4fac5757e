//! The only module that formats tickets.

use std::time::Duration;

use super::attempt_id::AttemptId;
use super::limits::{MAX_TICKET_TTL, UPGRADE, WRITE};

/// An entry of a queue. It names the attempt and describes its grant, so that a release can make the grant without
/// asking the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) id: AttemptId,
    pub(crate) lease: Duration,
    pub(crate) claim: Claim,
    /// For the end of a part of a hold of permits: the units that the other parts have. 0 otherwise.
    pub(crate) rest: u32,
}

/// The claim of a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The lock, with this number of fencing tokens reserved.
    Tokens(u32),
    /// Permits. The ticket carries the limit of its call site, because the releasing client may have another one.
    Units { units: u32, limit: u32 },
    /// Nothing to hold. The ticket of a latch is only the attempt id.
    Nothing,
}

impl Claim {
    /// The number of tokens or units.
    pub(super) fn amount(self) -> u32 {
        match self {
            Self::Tokens(tokens) => tokens,
            Self::Units { units, .. } => units,
            Self::Nothing => 0,
        }
    }

    /// The number of tokens or units of a claim for a grant that serves so many guards.
    pub(crate) fn amount_for(self, guards: u32) -> u32 {
        match self {
            Self::Tokens(_) => guards,
            Self::Units { .. } | Self::Nothing => self.amount(),
        }
    }

    /// Whether nobody else can hold beside a grant of this claim.
    pub(crate) fn is_exclusive(self) -> bool {
        match self {
            Self::Units { units, .. } => units == WRITE,
            Self::Tokens(_) | Self::Nothing => true,
        }
    }

    /// Whether the ticket goes before all others. The one that upgrades keeps those out that wait for all units, so it
    /// must not wait for them.
    pub(crate) fn goes_first(self) -> bool {
        matches!(self, Self::Units { units: UPGRADE, limit: WRITE })
    }
}

impl Ticket {
    /// The same, to end one part of the hold. The other parts keep so many units.
    pub(crate) fn keeping(self, rest: u32) -> Self {
        Self { rest, ..self }
    }

    pub(crate) fn text(&self) -> String {
        let (id, lease) = (self.id.text(), self.lease.as_millis());
        match self.claim {
            Claim::Tokens(tokens) => format!("{id}/{lease}/{tokens}"),
            Claim::Units { units, limit } => format!("{id}/{lease}/{units}/{limit}"),
            Claim::Nothing => id,
        }
    }

    /// Reads a ticket that was found in Redis, which another program may have written.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let id = AttemptId::parse(parts.next()?)?;
        let numbers: Vec<u64> = parts.map(str::parse).collect::<Result<_, _>>().ok()?;
        let amount = |number: u64| u32::try_from(number).ok();
        let (lease, claim) = match *numbers {
            [] => (0, Claim::Nothing),
            [lease, tokens] => (lease, Claim::Tokens(amount(tokens)?)),
            [lease, units, limit] => (lease, Claim::Units { units: amount(units)?, limit: amount(limit)? }),
            _ => return None,
        };
        Some(Self { id, lease: Duration::from_millis(lease), claim, rest: 0 })
    }

    /// How long the ticket lives without a heartbeat.
    pub(crate) fn ttl(&self) -> Duration {
        ticket_ttl(self.lease)
    }
}

/// How long a ticket lives without a heartbeat: never longer than the lease of its grant. A lease counted from the last
/// sign of life therefore covers any grant of the ticket.
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
        let text = |claim| Ticket { id, lease: Duration::from_millis(1500), claim, rest: 0 }.text();
        assert_eq!(text(Claim::Tokens(2)), "00000000-0000-0000-0000-000000000007:12/1500/2");
        assert_eq!(text(Claim::Units { units: 2, limit: 5 }), "00000000-0000-0000-0000-000000000007:12/1500/2/5");
        assert_eq!(text(Claim::Nothing), id.text());
        for claim in [Claim::Tokens(2), Claim::Units { units: 2, limit: 5 }] {
            let ticket = Ticket { id, lease: Duration::from_millis(1500), claim, rest: 0 };
            assert_eq!(Ticket::parse(&ticket.text()), Some(ticket));
        }
        assert_eq!(
            Ticket::parse(&id.text()),
            Some(Ticket { id, lease: Duration::ZERO, claim: Claim::Nothing, rest: 0 })
        );
        for junk in
            ["", "7", "{}/", "{}/1500", "{}/1500/", "{}/1500/x", "{}/1500/-1", "{}/1500/4294967296", "{}/1/2/3/4"]
        {
            assert_eq!(Ticket::parse(&junk.replace("{}", &id.text())), None, "{junk}");
        }
    }

    #[test]
    fn a_ticket_never_outlives_the_lease_it_asks_for() {
        for seconds in [1, 30, 1800, 86_400] {
            let lease = Duration::from_secs(seconds);
            assert!(ticket_ttl(lease) <= lease.min(Duration::from_secs(1800)));
        }
    }
}
