//! The replies of the election's scripts.

use std::time::Duration;

use super::change::StoredChange;
use crate::protocol::fields::Fields;
use crate::protocol::limits::QUEUE_TTL;
use crate::protocol::reply::{Acquired, HeartbeatReply, ServerMillis, TicketState};
use crate::protocol::token::Token;

/// The answer to an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Announced {
    /// `false`: the caller does not lead in that term.
    pub(crate) is_noted: bool,
    pub(crate) now: ServerMillis,
}

/// An election, as it was seen at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ElectionSeen {
    /// The attempt id and the term of the leader's hold.
    pub(crate) holder: Option<(String, Token)>,
    pub(crate) now: ServerMillis,
    /// Whether there may have been other changes after what was known.
    pub(crate) missed: bool,
    /// The oldest first.
    pub(crate) changes: Vec<StoredChange>,
}

pub(super) fn announced(fields: &mut Fields<'_>) -> Option<Announced> {
    let is_noted = match fields.word()? {
        "NOTED" => true,
        "NOT_HELD" => false,
        _ => return None,
    };
    Some(Announced { is_noted, now: fields.number()? })
}

pub(super) fn seen(fields: &mut Fields<'_>) -> Option<ElectionSeen> {
    let id = fields.word()?.to_owned();
    let holder = if id.is_empty() { fields.word().map(|_| None)? } else { Some((id, fields.token()?)) };
    let (now, missed) = (fields.number()?, fields.flag()?);
    let mut changes = Vec::new();
    while !fields.at_end() {
        changes.push(StoredChange::parse(fields.word()?)?);
    }
    changes.reverse();
    Some(ElectionSeen { holder, now, missed, changes })
}

pub(super) fn watched(fields: &mut Fields<'_>) -> Option<Acquired> {
    Some(match fields.word()? {
        "OPEN" => Acquired::Granted { token: Token::NONE, now: fields.number()? },
        "QUEUED" => {
            Acquired::Queued { holder_left: left(fields)?, length: 0, call_again: false, now: fields.number()? }
        }
        "STALE" => Acquired::Stale { now: fields.number()? },
        _ => return None,
    })
}

/// The rest of the leader's lease. Without a leader there is no lease to wait for, so the ticket's own time to live
/// decides when to ask again.
fn left(fields: &mut Fields<'_>) -> Option<Option<Duration>> {
    fields.ttl().map(|left| left.or(Some(QUEUE_TTL)))
}

pub(super) fn watchers(fields: &mut Fields<'_>) -> Option<HeartbeatReply> {
    let waiters = fields.entries();
    let (now, holder_left) = (fields.number()?, left(fields)?);
    let mut tickets = Vec::with_capacity(waiters);
    for _ in 0..waiters {
        tickets.push(match fields.word()? {
            "WAITING" => TicketState::Waiting,
            "OPEN" => TicketState::Granted(Token::NONE),
            _ => return None,
        });
    }
    Some(HeartbeatReply { now, holder_left, call_again: false, tickets })
}
