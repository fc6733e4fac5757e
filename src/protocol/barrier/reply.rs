//! The replies of the barrier's scripts.

use crate::protocol::fields::Fields;
use crate::protocol::limits::QUEUE_TTL;
use crate::protocol::reply::{Acquired, Cancelled, HeartbeatReply, ServerMillis, TicketState};
use crate::protocol::ticket::Ticket;
use crate::protocol::token::Token;

/// The answer to a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BarrierReset {
    Done {
        /// Whether parties waited.
        broke: bool,
        now: ServerMillis,
    },
    Stale {
        now: ServerMillis,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BarrierInspected {
    pub(crate) now: ServerMillis,
    /// The last generation that has ended. 0: none is known.
    pub(crate) generation: u64,
    /// The number of parties of the last arrival. 0: none is known.
    pub(crate) parties: u32,
    pub(crate) waiters: u64,
    /// The tickets of some of them.
    pub(crate) queue: Vec<Ticket>,
}

/// The answer to a party that is ready to leave a double barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// The number tells how the generation has ended.
    Ended {
        number: Token,
        now: ServerMillis,
    },
    Waits {
        now: ServerMillis,
    },
    Gone {
        now: ServerMillis,
    },
}

pub(super) fn leaving(fields: &mut Fields<'_>) -> Option<Leaving> {
    Some(match fields.word()? {
        "ENDED" => Leaving::Ended { number: fields.token()?, now: fields.number()? },
        "QUEUED" => {
            fields.ttl()?;
            Leaving::Waits { now: fields.number()? }
        }
        "GONE" => Leaving::Gone { now: fields.number()? },
        _ => return None,
    })
}

/// The number of an end takes the place of a token.
pub(super) fn arrived(fields: &mut Fields<'_>) -> Option<Acquired> {
    Some(match fields.word()? {
        "ENDED" => Acquired::Granted { token: fields.token()?, now: fields.number()? },
        "QUEUED" => {
            // The last generation that has ended takes the place of the length.
            let (holder_left, length) = (fields.ttl()?, fields.number()?);
            Acquired::Queued { holder_left, length, call_again: false, now: fields.number()? }
        }
        "OTHER" => Acquired::Over { limit: fields.units()?, now: fields.number()? },
        "STALE" => Acquired::Stale { now: fields.number()? },
        _ => return None,
    })
}

pub(super) fn heartbeat_reply(fields: &mut Fields<'_>) -> Option<HeartbeatReply> {
    let waiters = fields.entries();
    // When no party waits there is no lease to ask about.
    let (now, holder_left) = (fields.number()?, fields.ttl()?.or(Some(QUEUE_TTL)));
    let mut tickets = Vec::with_capacity(waiters);
    for _ in 0..waiters {
        tickets.push(match fields.word()? {
            "WAITING" => fields.word().map(|_| TicketState::Waiting)?,
            "ENDED" => TicketState::Granted(fields.token()?),
            "GONE" => fields.word().map(|_| TicketState::Gone)?,
            _ => return None,
        });
    }
    Some(HeartbeatReply { now, holder_left, call_again: false, tickets })
}

pub(super) fn left(fields: &mut Fields<'_>) -> Option<Cancelled> {
    match fields.word()? {
        "CANCELLED" | "GONE" => Some(Cancelled { was_held: false, call_again: false, now: fields.number()? }),
        _ => None,
    }
}

pub(super) fn reset(fields: &mut Fields<'_>) -> Option<BarrierReset> {
    Some(match fields.word()? {
        "RESET" => BarrierReset::Done { broke: true, now: fields.number()? },
        "GONE" => BarrierReset::Done { broke: false, now: fields.number()? },
        "STALE" => BarrierReset::Stale { now: fields.number()? },
        _ => return None,
    })
}

pub(in crate::protocol) fn inspected(fields: &mut Fields<'_>) -> Option<BarrierInspected> {
    Some(BarrierInspected {
        now: fields.number()?,
        generation: fields.number()?,
        parties: fields.units()?,
        waiters: fields.number()?,
        queue: fields.tickets()?,
    })
}
