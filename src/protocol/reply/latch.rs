//! What the scripts of count-down latches reply.

use std::time::Duration;

use super::{Cancelled, ServerMillis, UnexpectedReply, decode};
use crate::connection::Reply;
use crate::protocol::Script;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LatchSet {
    Set {
        now: ServerMillis,
    },
    /// It is being counted down already.
    Exists {
        count: u64,
        now: ServerMillis,
    },
    /// Not yet: some who waited for the last latch are to be told first, by calling again.
    More {
        now: ServerMillis,
    },
    Stale {
        now: ServerMillis,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountedDown {
    /// What is left; and whether some who wait are to be told still.
    Count {
        count: u64,
        more: bool,
        now: ServerMillis,
    },
    Stale {
        now: ServerMillis,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LatchWait {
    Open { now: ServerMillis },
    Queued { left: Option<Duration>, now: ServerMillis },
    Stale { now: ServerMillis },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LatchHeartbeatReply {
    pub(crate) now: ServerMillis,
    /// Some who wait are to be told still.
    pub(crate) more: bool,
    pub(crate) tickets: Vec<LatchTicket>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LatchTicket {
    Waiting,
    Open,
    /// Nobody knows whether the latch was counted down.
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LatchDeleted {
    /// Whether there was one; and whether some who waited are to be told still.
    Done {
        existed: bool,
        more: bool,
        now: ServerMillis,
    },
    Stale {
        now: ServerMillis,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LatchInspected {
    /// 0 if there is no latch.
    pub(crate) count: u64,
    /// What is left of the latch, if there is one.
    pub(crate) left: Option<Duration>,
    pub(crate) waiters: u64,
    pub(crate) now: ServerMillis,
}

pub(crate) fn latch_set(script: &Script, reply: &Reply) -> Result<LatchSet, UnexpectedReply> {
    decode(script, reply, |fields| {
        Some(match fields.word()? {
            "SET" => LatchSet::Set { now: fields.number()? },
            "EXISTS" => LatchSet::Exists { count: fields.number()?, now: fields.number()? },
            "MORE" => LatchSet::More { now: fields.number()? },
            "STALE" => LatchSet::Stale { now: fields.number()? },
            _ => return None,
        })
    })
}

pub(crate) fn counted_down(script: &Script, reply: &Reply) -> Result<CountedDown, UnexpectedReply> {
    decode(script, reply, |fields| {
        Some(match fields.word()? {
            "COUNT" => CountedDown::Count { count: fields.number()?, more: fields.flag()?, now: fields.number()? },
            "STALE" => CountedDown::Stale { now: fields.number()? },
            _ => return None,
        })
    })
}

pub(crate) fn latch_wait(script: &Script, reply: &Reply) -> Result<LatchWait, UnexpectedReply> {
    decode(script, reply, |fields| {
        Some(match fields.word()? {
            "OPEN" => LatchWait::Open { now: fields.number()? },
            "QUEUED" => LatchWait::Queued { left: fields.ttl()?, now: fields.number()? },
            "STALE" => LatchWait::Stale { now: fields.number()? },
            _ => return None,
        })
    })
}

pub(crate) fn latch_heartbeat_reply(
    script: &Script,
    reply: &Reply,
    tickets: usize,
) -> Result<LatchHeartbeatReply, UnexpectedReply> {
    decode(script, reply, |fields| {
        let (now, more) = (fields.number()?, fields.flag()?);
        let mut states = Vec::with_capacity(tickets);
        for _ in 0..tickets {
            states.push(match fields.word()? {
                "WAITING" => LatchTicket::Waiting,
                "OPEN" => LatchTicket::Open,
                "GONE" => LatchTicket::Gone,
                _ => return None,
            });
        }
        Some(LatchHeartbeatReply { now, more, tickets: states })
    })
}

pub(crate) fn latch_cancelled(script: &Script, reply: &Reply) -> Result<Cancelled, UnexpectedReply> {
    decode(script, reply, |fields| match fields.word()? {
        "CANCELLED" | "GONE" => Some(Cancelled { more: fields.flag()?, now: fields.number()? }),
        _ => None,
    })
}

pub(crate) fn latch_deleted(script: &Script, reply: &Reply) -> Result<LatchDeleted, UnexpectedReply> {
    decode(script, reply, |fields| {
        Some(match fields.word()? {
            "DELETED" => LatchDeleted::Done { existed: true, more: fields.flag()?, now: fields.number()? },
            "GONE" => LatchDeleted::Done { existed: false, more: false, now: fields.number()? },
            "STALE" => LatchDeleted::Stale { now: fields.number()? },
            _ => return None,
        })
    })
}

pub(crate) fn latch_inspected(script: &Script, reply: &Reply) -> Result<LatchInspected, UnexpectedReply> {
    decode(script, reply, |fields| {
        let (count, left) = (fields.number()?, fields.ttl()?);
        Some(LatchInspected { count, left, waiters: fields.number()?, now: fields.number()? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::LATCH_SET;

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
            vec![Reply::Integer(1), Reply::Integer(0), word("BUSY")],
            vec![Reply::Integer(-1), Reply::Integer(1), Reply::Integer(1), Reply::Integer(1)],
        ];
        for reply in malformed.map(Reply::Array) {
            assert!(latch_set(&LATCH_SET, &reply).is_err());
            assert!(counted_down(&LATCH_SET, &reply).is_err());
            assert!(latch_wait(&LATCH_SET, &reply).is_err());
            assert!(latch_heartbeat_reply(&LATCH_SET, &reply, 1).is_err());
            assert!(latch_cancelled(&LATCH_SET, &reply).is_err());
            assert!(latch_deleted(&LATCH_SET, &reply).is_err());
            assert!(latch_inspected(&LATCH_SET, &reply).is_err());
        }
        let reply =
            Reply::Array(vec![Reply::Integer(9), Reply::Integer(1), word("WAITING"), word("OPEN"), word("GONE")]);
        let tickets = vec![LatchTicket::Waiting, LatchTicket::Open, LatchTicket::Gone];
        assert_eq!(
            latch_heartbeat_reply(&LATCH_SET, &reply, 3),
            Ok(LatchHeartbeatReply { now: 9, more: true, tickets })
        );
    }
}
