//! The only module that reads the messages of an inbox.

use std::time::Duration;

use super::attempt_id::AttemptId;
use super::token::Token;

/// A message in the inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Granted {
        id: AttemptId,
        token: Token,
        /// The time of the grant, in ms by the server's clock.
        at: u64,
    },
    Revoked {
        id: AttemptId,
    },
    /// Another acquisition waits for this hold, which is retained.
    Wanted {
        id: AttemptId,
    },
    /// Somebody asks the holder to release.
    Asked {
        id: AttemptId,
    },
    /// The latch is open now, for which these attempts waited.
    Open {
        ids: Vec<AttemptId>,
    },
    /// The ticket waits behind another hold now, with this rest of its lease.
    Ends {
        id: AttemptId,
        left: Duration,
    },
    /// These tickets were removed, because they can never be granted.
    Gone {
        ids: Vec<AttemptId>,
    },
    /// An operator has removed these tickets.
    Dropped {
        ids: Vec<AttemptId>,
    },
}

impl Message {
    /// Reads a message. `None` if the scripts send nothing like it: every client of the server may publish to a
    /// channel.
    pub(crate) fn parse(payload: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(payload).ok()?;
        if let Some(id) = text.strip_prefix("revoked ") {
            return Some(Self::Revoked { id: AttemptId::parse(id)? });
        }
        if let Some(id) = text.strip_prefix("wanted ") {
            return Some(Self::Wanted { id: AttemptId::parse(id).filter(|id| id.is_retained())? });
        }
        if let Some(id) = text.strip_prefix("asked ") {
            return Some(Self::Asked { id: AttemptId::parse(id)? });
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
        if let Some(ids) = text.strip_prefix("dropped ") {
            return Some(Self::Dropped { ids: list(ids)? });
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
    use uuid::Uuid;

    use super::*;

    fn id() -> AttemptId {
        AttemptId { client: Uuid::from_u128(7), n: 12 }
    }

    #[test]
    fn messages() {
        let granted = Message::Granted { id: id(), token: Token::new(9), at: 30_000 };
        assert_eq!(Message::parse(format!("9 30000 {}", id().text()).as_bytes()), Some(granted));
        let revoked = Message::Revoked { id: id() };
        assert_eq!(Message::parse(format!("revoked {}", id().text()).as_bytes()), Some(revoked));
        let wanted = Message::Wanted { id: id().retained() };
        assert_eq!(Message::parse(format!("wanted {}", id().retained().text()).as_bytes()), Some(wanted));
        let asked = Message::Asked { id: id() };
        assert_eq!(Message::parse(format!("asked {}", id().text()).as_bytes()), Some(asked));
        let open = Message::Open { ids: vec![id()] };
        assert_eq!(Message::parse(format!("open {}", id().text()).as_bytes()), Some(open));
        let gone = Message::Gone { ids: vec![id(), id()] };
        assert_eq!(Message::parse(format!("gone {0} {0}", id().text()).as_bytes()), Some(gone));
        let dropped = Message::Dropped { ids: vec![id()] };
        assert_eq!(Message::parse(format!("dropped {}", id().text()).as_bytes()), Some(dropped));
        let ends = Message::Ends { id: id(), left: Duration::from_millis(1500) };
        assert_eq!(Message::parse(format!("ends 1500 {}", id().text()).as_bytes()), Some(ends));
        for junk in [
            "",
            "gone x",
            "dropped",
            "dropped x",
            "ends 5",
            "ends x y:1",
            "ends 5 a:b",
            "9",
            "9 1",
            "x 1 y:1",
            "revoked",
            "revoked x",
            "wanted",
            "asked",
            "asked x",
            "wanted 5",
            // No script asks for a hold that is not retained.
            "wanted 00000000-0000-0000-0000-000000000007:12",
            "9 1 a:b",
            "-1 2 3",
            "99999999999999999 1 ",
        ] {
            assert_eq!(Message::parse(junk.as_bytes()), None, "{junk:?}");
        }
        assert_eq!(Message::parse(&[0xff, 0xfe]), None);
    }
}
