//! The replies of the latch's scripts.

use std::time::Duration;

use crate::protocol::fields::Fields;
use crate::protocol::limits::QUEUE_TTL;
use crate::protocol::reply::{Acquired, Cancelled, HeartbeatReply, ServerMillis, TicketState};
use crate::protocol::ticket::Ticket;
use crate::protocol::token::Token;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LatchSet {
    Set {
        now: ServerMillis,
    },
    /// The latch exists and is being counted down.
    Exists {
        count: u64,
        now: ServerMillis,
    },
    /// Not set yet: some waiters of the former latch must be notified first, by calling again.
    More {
        now: ServerMillis,
    },
    Stale {
        now: ServerMillis,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountedDown {
    /// The remaining count, and whether more waiters have to be notified.
    Count {
        count: u64,
        call_again: bool,
        now: ServerMillis,
    },
    Stale {
        now: ServerMillis,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LatchDeleted {
    /// Whether there was a latch, and whether more waiters have to be notified.
    Done {
        existed: bool,
        call_again: bool,
        now: ServerMillis,
    },
    Stale {
        now: ServerMillis,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LatchInspected {
    /// The remaining count. 0 if there is no latch.
    pub(crate) count: u64,
    /// The remaining time to live of the latch, if there is one.
    pub(crate) left: Option<Duration>,
    pub(crate) waiters: u64,
    /// The tickets of some of them.
    pub(crate) queue: Vec<Ticket>,
    pub(crate) now: ServerMillis,
}

pub(in crate::protocol) fn latch_set(fields: &mut Fields<'_>) -> Option<LatchSet> {
    Some(match fields.word()? {
        "SET" => LatchSet::Set { now: fields.number()? },
        "EXISTS" => LatchSet::Exists { count: fields.number()?, now: fields.number()? },
        "MORE" => LatchSet::More { now: fields.number()? },
        "STALE" => LatchSet::Stale { now: fields.number()? },
        _ => return None,
    })
}

pub(in crate::protocol) fn counted_down(fields: &mut Fields<'_>) -> Option<CountedDown> {
    Some(match fields.word()? {
        "COUNT" => CountedDown::Count { count: fields.number()?, call_again: fields.flag()?, now: fields.number()? },
        "STALE" => CountedDown::Stale { now: fields.number()? },
        _ => return None,
    })
}

pub(in crate::protocol) fn latch_wait(fields: &mut Fields<'_>) -> Option<Acquired> {
    Some(match fields.word()? {
        "OPEN" => Acquired::Granted { token: Token::NONE, now: fields.number()? },
        "NONE" => Acquired::Absent { now: fields.number()? },
        "QUEUED" => {
            // A latch still exists in the millisecond in which it ends, so the question comes a little later.
            let holder_left = fields.ttl()?.map(|left| left + Duration::from_millis(5));
            Acquired::Queued { holder_left, length: 0, call_again: false, now: fields.number()? }
        }
        "STALE" => Acquired::Stale { now: fields.number()? },
        _ => return None,
    })
}

pub(in crate::protocol) fn latch_heartbeat_reply(fields: &mut Fields<'_>) -> Option<HeartbeatReply> {
    let waiters = fields.entries();
    let (now, call_again) = (fields.number()?, fields.flag()?);
    let mut tickets = Vec::with_capacity(waiters);
    for _ in 0..waiters {
        tickets.push(match fields.word()? {
            "WAITING" => TicketState::Waiting,
            "OPEN" => TicketState::Granted(Token::NONE),
            // It is unknown whether the latch was counted down.
            "GONE" => TicketState::Gone,
            _ => return None,
        });
    }
    // There is no lease to wait for, so the tickets' own time to live decides when to ask again.
    Some(HeartbeatReply { now, holder_left: Some(QUEUE_TTL), call_again, tickets })
}

pub(in crate::protocol) fn latch_cancelled(fields: &mut Fields<'_>) -> Option<Cancelled> {
    match fields.word()? {
        "CANCELLED" | "GONE" => Some(Cancelled { was_held: false, call_again: fields.flag()?, now: fields.number()? }),
        _ => None,
    }
}

pub(in crate::protocol) fn latch_deleted(fields: &mut Fields<'_>) -> Option<LatchDeleted> {
    Some(match fields.word()? {
        "DELETED" => LatchDeleted::Done { existed: true, call_again: fields.flag()?, now: fields.number()? },
        "GONE" => LatchDeleted::Done { existed: false, call_again: false, now: fields.number()? },
        "STALE" => LatchDeleted::Stale { now: fields.number()? },
        _ => return None,
    })
}

pub(in crate::protocol) fn latch_inspected(fields: &mut Fields<'_>) -> Option<LatchInspected> {
    let now = fields.number()?;
    let (count, left) = (fields.number()?, fields.ttl()?);
    Some(LatchInspected { count, left, waiters: fields.number()?, queue: fields.tickets()?, now })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Reply;
    use crate::protocol::fields::{UnexpectedReply, decode};
    use crate::protocol::script::Script;

    fn read<T>(read: fn(&mut Fields<'_>) -> Option<T>, reply: &Reply, entries: usize) -> Result<T, UnexpectedReply> {
        decode(Script::all().next().unwrap(), reply, entries, read)
    }

    #[test]
    fn malformed() {
        let word = |word: &str| Reply::Bytes(word.into());
        let malformed = [
            vec![],
            vec![word("x"), Reply::Integer(1)],
            vec![word("SET")],
            vec![word("COUNT"), Reply::Integer(-1), Reply::Integer(0), Reply::Integer(1)],
            vec![word("COUNT"), Reply::Integer(1), Reply::Integer(2), Reply::Integer(1)],
            vec![word("GONE"), Reply::Integer(2), Reply::Integer(1)],
            vec![word("MORE"), Reply::Integer(1), Reply::Integer(1)],
            vec![word("OPEN"), Reply::Integer(1), Reply::Integer(1)],
            vec![word("NONE"), Reply::Integer(1), Reply::Integer(1)],
            vec![Reply::Integer(1), Reply::Integer(0), word("BUSY")],
            vec![Reply::Integer(-1), Reply::Integer(1), Reply::Integer(1), Reply::Integer(1)],
        ];
        for reply in malformed.map(Reply::Array) {
            assert!(read(latch_set, &reply, 0).is_err());
            assert!(read(counted_down, &reply, 0).is_err());
            assert!(read(latch_wait, &reply, 0).is_err());
            assert!(read(latch_heartbeat_reply, &reply, 1).is_err());
            assert!(read(latch_cancelled, &reply, 0).is_err());
            assert!(read(latch_deleted, &reply, 0).is_err());
            assert!(read(latch_inspected, &reply, 0).is_err());
        }
        let reply =
            Reply::Array(vec![Reply::Integer(9), Reply::Integer(1), word("WAITING"), word("OPEN"), word("GONE")]);
        let tickets = vec![TicketState::Waiting, TicketState::Granted(Token::NONE), TicketState::Gone];
        assert_eq!(
            read(latch_heartbeat_reply, &reply, 3),
            Ok(HeartbeatReply { now: 9, holder_left: Some(QUEUE_TTL), call_again: true, tickets })
        );
    }
}
