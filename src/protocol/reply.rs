//! The typed replies that every kind of resource has, and how they are read.

use std::time::Duration;

use super::failure::Failure;
use super::fields::Fields;
use super::message::Message;
use super::token::Token;

/// The server's clock in milliseconds, as a reply carries it.
pub(crate) type ServerMillis = u64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Acquired {
    Granted {
        token: Token,
        now: ServerMillis,
    },
    Queued {
        holder_left: Option<Duration>,
        length: u64,
        more: bool,
        now: ServerMillis,
    },
    Busy {
        more: bool,
        now: ServerMillis,
    },
    Full {
        now: ServerMillis,
    },
    Stale {
        now: ServerMillis,
    },
    /// More units than there are at all. Never for a lock.
    Over {
        limit: u32,
        now: ServerMillis,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Released {
    /// With messages to the client, which its inbox does not get.
    Released {
        more: bool,
        told: Vec<Message>,
        now: ServerMillis,
    },
    NotHeld {
        more: bool,
        now: ServerMillis,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Requeued {
    /// The ticket was next. With messages to the client, which its inbox does not get.
    Granted { token: Token, more: bool, told: Vec<Message>, now: ServerMillis },
    /// The ticket waits.
    Queued { more: bool, told: Vec<Message>, now: ServerMillis },
    /// Nothing was queued.
    NotHeld { now: ServerMillis },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cancelled {
    pub(crate) more: bool,
    pub(crate) now: ServerMillis,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeartbeatReply {
    pub(crate) now: ServerMillis,
    pub(crate) holder_left: Option<Duration>,
    pub(crate) more: bool,
    pub(crate) tickets: Vec<TicketState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TicketState {
    Waiting,
    Granted(Token),
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Renewed {
    pub(crate) now: ServerMillis,
    pub(crate) holds: Vec<HoldState>,
    /// Why some holds are [`Unanswered`](HoldState::Unanswered).
    pub(crate) failure: Option<Failure>,
}

impl Renewed {
    /// The same, acknowledged by so many replicas where at least `needed` have to.
    pub(in crate::protocol) fn acknowledged(mut self, replicas: u32, needed: u32) -> Self {
        if replicas < needed {
            for hold in self.holds.iter_mut().filter(|hold| **hold == HoldState::Held) {
                *hold = HoldState::Unacknowledged(replicas);
            }
        }
        self
    }

    /// The outcome of several calls about one hold each. The error is that of a call if none was answered.
    pub(in crate::protocol) fn joined(answers: Vec<Result<Self, Failure>>) -> Result<Self, Failure> {
        let mut joined = Self { now: 0, holds: Vec::with_capacity(answers.len()), failure: None };
        for answer in answers {
            match answer {
                Ok(renewed) => {
                    joined.now = joined.now.max(renewed.now);
                    joined.holds.extend(renewed.holds);
                }
                Err(failure) => {
                    joined.holds.push(HoldState::Unanswered);
                    joined.failure.get_or_insert(failure);
                }
            }
        }
        let none = joined.holds.iter().all(|hold| *hold == HoldState::Unanswered);
        match joined.failure.take() {
            Some(failure) if none => Err(failure),
            failure => Ok(Self { failure, ..joined }),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HoldState {
    Held,
    NotHeld,
    Unusable,
    /// It is held, but only so many replicas have acknowledged that in time.
    Unacknowledged(u32),
    /// The call about this hold failed.
    Unanswered,
}

pub(in crate::protocol) fn acquired(fields: &mut Fields<'_>) -> Option<Acquired> {
    Some(match fields.word()? {
        "GRANTED" => Acquired::Granted { token: fields.token()?, now: fields.number()? },
        "QUEUED" => Acquired::Queued {
            holder_left: fields.ttl()?,
            length: fields.number()?,
            more: fields.flag()?,
            now: fields.number()?,
        },
        "BUSY" => {
            fields.ttl()?;
            Acquired::Busy { more: fields.flag()?, now: fields.number()? }
        }
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
    Some(match fields.word()? {
        "RELEASED" => {
            let (more, now) = (fields.flag()?, fields.number()?);
            Released::Released { more, told: fields.messages()?, now }
        }
        "NOT_HELD" => Released::NotHeld { more: fields.flag()?, now: fields.number()? },
        _ => return None,
    })
}

pub(in crate::protocol) fn requeued(fields: &mut Fields<'_>) -> Option<Requeued> {
    Some(match fields.word()? {
        "GRANTED" => {
            let (token, more, now) = (fields.token()?, fields.flag()?, fields.number()?);
            Requeued::Granted { token, more, told: fields.messages()?, now }
        }
        "RELEASED" => {
            let (more, now) = (fields.flag()?, fields.number()?);
            Requeued::Queued { more, told: fields.messages()?, now }
        }
        "NOT_HELD" => {
            // The next heartbeat says the same.
            fields.flag()?;
            Requeued::NotHeld { now: fields.number()? }
        }
        _ => return None,
    })
}

pub(in crate::protocol) fn cancelled(fields: &mut Fields<'_>) -> Option<Cancelled> {
    match fields.word()? {
        "CANCELLED" | "RELEASED" | "GONE" => Some(Cancelled { more: fields.flag()?, now: fields.number()? }),
        _ => None,
    }
}

pub(in crate::protocol) fn heartbeat_reply(fields: &mut Fields<'_>) -> Option<HeartbeatReply> {
    let tickets = fields.entries();
    let (now, holder_left, more) = (fields.number()?, fields.ttl()?, fields.flag()?);
    let mut states = Vec::with_capacity(tickets);
    for _ in 0..tickets {
        states.push(match fields.word()? {
            "WAITING" => fields.word().map(|_| TicketState::Waiting)?,
            "GRANTED" => TicketState::Granted(fields.token()?),
            "GONE" => fields.word().map(|_| TicketState::Gone)?,
            _ => return None,
        });
    }
    Some(HeartbeatReply { now, holder_left, more, tickets: states })
}

pub(in crate::protocol) fn renewed(fields: &mut Fields<'_>) -> Option<Renewed> {
    let holds = fields.entries();
    let now = fields.number()?;
    let mut states = Vec::with_capacity(holds);
    for _ in 0..holds {
        states.push(match fields.integer()? {
            1 => HoldState::Held,
            0 => HoldState::NotHeld,
            -1 => HoldState::Unusable,
            _ => return None,
        });
    }
    Some(Renewed { now, holds: states, failure: None })
}

#[cfg(test)]
mod tests;
