//! The typed replies that every kind of resource has, and the code that reads them.

use std::time::Duration;

use super::fields::{self, Fields};
use super::message::Message;
use super::token::Token;

/// The server's clock in milliseconds, as a reply carries it.
pub(crate) type ServerMillis = u64;

/// An answer, with the time of the server's clock. `None`: the request came after `not_after`, and did nothing.
pub(crate) type Timed<T> = (Option<T>, ServerMillis);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Acquired {
    Granted {
        token: Token,
        now: ServerMillis,
    },
    Queued {
        holder_left: Option<Duration>,
        length: u64,
        call_again: bool,
        now: ServerMillis,
    },
    Busy {
        /// What is left of the lease of the hold in the way.
        left: Option<Duration>,
        /// Whether the hold in the way is released for one that waits, unless it is used.
        is_retained: bool,
        call_again: bool,
        now: ServerMillis,
    },
    Full {
        now: ServerMillis,
    },
    Stale {
        now: ServerMillis,
    },
    /// The request is for more units than exist. A lock never replies this.
    Over {
        limit: u32,
        now: ServerMillis,
    },
    /// There is no latch to wait for.
    Absent {
        now: ServerMillis,
    },
}

impl Acquired {
    pub(crate) fn now(&self) -> ServerMillis {
        match *self {
            Self::Granted { now, .. } | Self::Queued { now, .. } | Self::Busy { now, .. } | Self::Over { now, .. } => {
                now
            }
            Self::Full { now } | Self::Stale { now } | Self::Absent { now } => now,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Released {
    /// Released. The messages are for the client itself; its inbox does not get them.
    Released {
        call_again: bool,
        messages: Vec<Message>,
        now: ServerMillis,
    },
    NotHeld {
        call_again: bool,
        now: ServerMillis,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Requeued {
    /// The ticket was next and is granted. The messages are for the client itself; its inbox does not get them.
    Granted { token: Token, call_again: bool, messages: Vec<Message>, now: ServerMillis },
    /// The ticket waits. The messages are for the client itself; its inbox does not get them.
    Queued { call_again: bool, messages: Vec<Message>, now: ServerMillis },
    /// Released. There is no queue: so many subscribers were woken, as far as the server counts them.
    Released { listeners: u64, now: ServerMillis },
    /// The hold was not there, and nothing was queued.
    NotHeld { now: ServerMillis },
}

/// The answer to a request for the next hand-off budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskedAhead {
    /// The hold continues, with new tokens.
    Granted {
        token: Token,
        now: ServerMillis,
    },
    /// Others wait, so the ticket was queued behind them.
    Queued {
        now: ServerMillis,
    },
    /// Others wait, or more is held than the limit in force allows. Nothing was queued.
    Wanted {
        now: ServerMillis,
    },
    NotHeld {
        now: ServerMillis,
    },
    Stale {
        now: ServerMillis,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cancelled {
    /// Whether the server has taken a hold away.
    pub(crate) was_held: bool,
    pub(crate) call_again: bool,
    pub(crate) now: ServerMillis,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeartbeatReply {
    pub(crate) now: ServerMillis,
    pub(crate) holder_left: Option<Duration>,
    pub(crate) call_again: bool,
    pub(crate) tickets: Vec<TicketState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TicketState {
    Waiting,
    Granted(Token),
    Gone,
}

pub(in crate::protocol) fn acquired(fields: &mut Fields<'_>) -> Option<Acquired> {
    if let Some(micros) = fields.short() {
        // The token is the server's time. 0 and 1 are replies of releases.
        let micros = u64::try_from(micros).ok().filter(|micros| *micros > 1)?;
        return Some(Acquired::Granted { token: fields::token(micros)?, now: micros / 1000 });
    }
    if let Some((token, micros)) = fields.short_pair() {
        return Some(Acquired::Granted { token: fields::token(token)?, now: micros / 1000 });
    }
    Some(match fields.word()? {
        "GRANTED" => Acquired::Granted { token: fields.token()?, now: fields.number()? },
        "QUEUED" => Acquired::Queued {
            holder_left: fields.ttl()?,
            length: fields.number()?,
            call_again: fields.flag()?,
            now: fields.number()?,
        },
        word @ ("BUSY" | "RETAINED") => Acquired::Busy {
            left: fields.ttl()?,
            is_retained: word == "RETAINED",
            call_again: fields.flag()?,
            now: fields.number()?,
        },
        "FULL" => {
            fields.number()?;
            Acquired::Full { now: fields.number()? }
        }
        "STALE" => Acquired::Stale { now: fields.number()? },
        "OVER" => Acquired::Over { limit: fields.units()?, now: fields.number()? },
        _ => return None,
    })
}

pub(in crate::protocol) fn released(fields: &mut Fields<'_>) -> Option<Released> {
    match fields.short() {
        Some(0) => return Some(Released::NotHeld { call_again: false, now: 0 }),
        Some(1) => return Some(Released::Released { call_again: false, messages: Vec::new(), now: 0 }),
        Some(_) => return None,
        None => {}
    }
    Some(match fields.word()? {
        "RELEASED" => {
            let (call_again, now) = (fields.flag()?, fields.number()?);
            Released::Released { call_again, messages: fields.messages()?, now }
        }
        "NOT_HELD" => Released::NotHeld { call_again: fields.flag()?, now: fields.number()? },
        _ => return None,
    })
}

pub(in crate::protocol) fn requeued(fields: &mut Fields<'_>) -> Option<Requeued> {
    Some(match fields.word()? {
        "GRANTED" => {
            let (token, call_again, now) = (fields.token()?, fields.flag()?, fields.number()?);
            Requeued::Granted { token, call_again, messages: fields.messages()?, now }
        }
        "RELEASED" => {
            let (call_again, now) = (fields.flag()?, fields.number()?);
            Requeued::Queued { call_again, messages: fields.messages()?, now }
        }
        "NOT_HELD" => {
            // Not read, because the next heartbeat says the same.
            fields.flag()?;
            Requeued::NotHeld { now: fields.number()? }
        }
        _ => return None,
    })
}

pub(in crate::protocol) fn asked_ahead(fields: &mut Fields<'_>) -> Option<AskedAhead> {
    Some(match fields.word()? {
        "GRANTED" => AskedAhead::Granted { token: fields.token()?, now: fields.number()? },
        "QUEUED" => AskedAhead::Queued { now: fields.number()? },
        "WANTED" => AskedAhead::Wanted { now: fields.number()? },
        "NOT_HELD" => AskedAhead::NotHeld { now: fields.number()? },
        "STALE" => AskedAhead::Stale { now: fields.number()? },
        _ => return None,
    })
}

pub(in crate::protocol) fn cancelled(fields: &mut Fields<'_>) -> Option<Cancelled> {
    let was_held = match fields.word()? {
        "RELEASED" => true,
        "CANCELLED" | "GONE" => false,
        _ => return None,
    };
    Some(Cancelled { was_held, call_again: fields.flag()?, now: fields.number()? })
}

pub(in crate::protocol) fn heartbeat_reply(fields: &mut Fields<'_>) -> Option<HeartbeatReply> {
    let tickets = fields.entries();
    let (now, holder_left, call_again) = (fields.number()?, fields.ttl()?, fields.flag()?);
    let mut states = Vec::with_capacity(tickets);
    for _ in 0..tickets {
        states.push(match fields.word()? {
            "WAITING" => fields.word().map(|_| TicketState::Waiting)?,
            "GRANTED" => TicketState::Granted(fields.token()?),
            "GONE" => fields.word().map(|_| TicketState::Gone)?,
            _ => return None,
        });
    }
    Some(HeartbeatReply { now, holder_left, call_again, tickets: states })
}

#[cfg(test)]
mod tests;
