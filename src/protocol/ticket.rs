//! The only place that spells attempt ids, tickets and the messages about them.

use std::time::Duration;

use uuid::Uuid;

use crate::protocol::key::Kind;
use crate::protocol::token::Token;

/// Identifies one acquisition attempt, in Redis and in messages. Never reused: whatever arrives late for an attempt
/// that was decided finds nobody.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct AttemptId {
    pub(crate) client: Uuid,
    pub(crate) n: u64,
}

impl AttemptId {
    pub(crate) fn text(self) -> String {
        format!("{}:{}", self.client, self.n)
    }

    fn parse(text: &str) -> Option<Self> {
        let (client, n) = text.split_once(':')?;
        Some(Self { client: Uuid::try_parse(client).ok()?, n: n.parse().ok()? })
    }

    /// The client that a attempt id found in Redis belongs to.
    pub(crate) fn client_of(text: &str) -> Option<Uuid> {
        Self::parse(text).map(|id| id.client)
    }
}

/// Shows enough to tell two apart in a log, not enough to act as the holder.
impl std::fmt::Debug for AttemptId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.4}..:{}", self.client.simple().to_string(), self.n)
    }
}

/// A place in a queue: the attempt id and what its grant will be, so that a release can grant it without asking. Of what has
/// units, also the limit of the call site: the one who releases may have another.
pub(crate) fn ticket(kind: Kind, id: AttemptId, lease: Duration, amount: u32) -> String {
    let ticket = format!("{}/{}/{amount}", id.text(), lease.as_millis());
    match kind.limit() {
        None => ticket,
        Some(limit) => format!("{ticket}/{limit}"),
    }
}

/// The attempt id of a ticket, which is all that a latch's consists of.
pub(crate) fn attempt_id_of(ticket: &str) -> &str {
    ticket.split('/').next().unwrap_or(ticket)
}

/// How long a ticket lives without a heartbeat: never longer than the lease that its grant will have, so that a grant
/// cannot come when the lease, counted from the last sign of life, is over.
pub(crate) fn ticket_ttl(lease: Duration) -> Duration {
    lease.min(Duration::from_secs(30 * 60))
}

/// What the inbox says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Granted {
        id: AttemptId,
        token: Token,
        /// When it was granted, in ms by the server's clock.
        at: u64,
    },
    Revoked {
        id: AttemptId,
    },
    /// These waited for a latch that is open now.
    Open {
        ids: Vec<AttemptId>,
    },
    /// This ticket waits, now behind a hold with so much of its lease left.
    Ends {
        id: AttemptId,
        left: Duration,
    },
    /// These tickets were dropped: they can never be granted.
    Gone {
        ids: Vec<AttemptId>,
    },
}

impl Message {
    /// `None` for anything that the scripts do not send: a channel is open to everybody.
    pub(crate) fn parse(payload: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(payload).ok()?;
        if let Some(id) = text.strip_prefix("revoked ") {
            return Some(Self::Revoked { id: AttemptId::parse(id)? });
        }
        if let Some(ends) = text.strip_prefix("ends ") {
            let (left, id) = ends.split_once(' ')?;
            return Some(Self::Ends { id: AttemptId::parse(id)?, left: Duration::from_millis(left.parse().ok()?) });
        }
        let list = |ids: &str| ids.split(' ').map(AttemptId::parse).collect::<Option<_>>();
        if let Some(ids) = text.strip_prefix("open ") {
            return Some(Self::Open { ids: list(ids)? });
        }
        if let Some(ids) = text.strip_prefix("gone ") {
            return Some(Self::Gone { ids: list(ids)? });
        }
        let mut words = text.split(' ');
        let token: u64 = words.next()?.parse().ok()?;
        let at = words.next()?.parse().ok()?;
        let id = AttemptId::parse(words.next()?)?;
        (words.next().is_none() && token <= Token::MAX).then_some(Self::Granted { id, token: Token::new(token), at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> AttemptId {
        AttemptId { client: Uuid::from_u128(7), n: 12 }
    }

    #[test]
    fn spelling() {
        let text = "00000000-0000-0000-0000-000000000007:12";
        assert_eq!(id().text(), text);
        assert_eq!(AttemptId::parse(text), Some(id()));
        let ticket = |kind| ticket(kind, id(), Duration::from_millis(1500), 2);
        assert_eq!(ticket(Kind::Lock), format!("{text}/1500/2"));
        assert_eq!(ticket(Kind::Semaphore { limit: 5 }), format!("{text}/1500/2/5"));
        assert_eq!(ticket(Kind::ReadWrite), format!("{text}/1500/2/1048576"));
        for kind in [Kind::Lock, Kind::Semaphore { limit: 5 }, Kind::Latch] {
            assert_eq!(attempt_id_of(&ticket(kind)), text);
        }
    }

    #[test]
    fn messages() {
        let granted = Message::Granted { id: id(), token: Token::new(9), at: 30_000 };
        assert_eq!(Message::parse(format!("9 30000 {}", id().text()).as_bytes()), Some(granted));
        let revoked = Message::Revoked { id: id() };
        assert_eq!(Message::parse(format!("revoked {}", id().text()).as_bytes()), Some(revoked));
        let open = Message::Open { ids: vec![id()] };
        assert_eq!(Message::parse(format!("open {}", id().text()).as_bytes()), Some(open));
        let gone = Message::Gone { ids: vec![id(), id()] };
        assert_eq!(Message::parse(format!("gone {0} {0}", id().text()).as_bytes()), Some(gone));
        let ends = Message::Ends { id: id(), left: Duration::from_millis(1500) };
        assert_eq!(Message::parse(format!("ends 1500 {}", id().text()).as_bytes()), Some(ends));
        for junk in [
            "",
            "gone x",
            "ends 5",
            "ends x y:1",
            "ends 5 a:b",
            "9",
            "9 1",
            "x 1 y:1",
            "revoked",
            "revoked x",
            "9 1 a:b",
            "-1 2 3",
            "99999999999999999 1 ",
        ] {
            assert_eq!(Message::parse(junk.as_bytes()), None, "{junk:?}");
        }
        assert_eq!(Message::parse(&[0xff, 0xfe]), None);
    }

    #[test]
    fn a_ticket_never_outlives_the_lease_it_asks_for() {
        for seconds in [1, 30, 1800, 86_400] {
            let lease = Duration::from_secs(seconds);
            assert!(ticket_ttl(lease) <= lease.min(Duration::from_secs(1800)));
        }
    }
}
