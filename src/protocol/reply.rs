//! From what the server replied to typed outcomes. An unexpected shape is an error, never a panic.

pub(crate) mod client;
pub(crate) mod latch;
pub(crate) mod lock;
pub(crate) mod permit;

use std::time::Duration;

use crate::connection::Reply;
use crate::protocol::Script;
use crate::protocol::ticket::Message;
use crate::protocol::token::Token;

/// A reply that the script never gives: another program answers, or the script and this table disagree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{script} replied {reply}")]
pub(crate) struct UnexpectedReply {
    script: &'static str,
    reply: String,
}

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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HoldState {
    Held,
    NotHeld,
    Unusable,
}

pub(crate) fn acquired(script: &Script, reply: &Reply) -> Result<Acquired, UnexpectedReply> {
    decode(script, reply, |fields| {
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
    })
}

pub(crate) fn released(script: &Script, reply: &Reply) -> Result<Released, UnexpectedReply> {
    decode(script, reply, |fields| {
        Some(match fields.word()? {
            "RELEASED" => {
                let (more, now) = (fields.flag()?, fields.number()?);
                Released::Released { more, told: fields.messages()?, now }
            }
            "NOT_HELD" => Released::NotHeld { more: fields.flag()?, now: fields.number()? },
            _ => return None,
        })
    })
}

pub(crate) fn requeued(script: &Script, reply: &Reply) -> Result<Requeued, UnexpectedReply> {
    decode(script, reply, |fields| {
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
                // Whoever asks next learns of it too.
                fields.flag()?;
                Requeued::NotHeld { now: fields.number()? }
            }
            _ => return None,
        })
    })
}

pub(crate) fn cancelled(script: &Script, reply: &Reply) -> Result<Cancelled, UnexpectedReply> {
    decode(script, reply, |fields| match fields.word()? {
        "CANCELLED" | "RELEASED" | "GONE" => Some(Cancelled { more: fields.flag()?, now: fields.number()? }),
        _ => None,
    })
}

pub(crate) fn heartbeat_reply(
    script: &Script,
    reply: &Reply,
    tickets: usize,
) -> Result<HeartbeatReply, UnexpectedReply> {
    decode(script, reply, |fields| {
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
    })
}

pub(crate) fn renewed(script: &Script, reply: &Reply, holds: usize) -> Result<Renewed, UnexpectedReply> {
    decode(script, reply, |fields| {
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
        Some(Renewed { now, holds: states })
    })
}

/// Reads the fields of a reply in order; all of them have to be read.
struct Fields<'a>(std::slice::Iter<'a, Reply>);

impl<'a> Fields<'a> {
    fn word(&mut self) -> Option<&'a str> {
        match self.0.next()? {
            Reply::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    fn integer(&mut self) -> Option<i64> {
        match self.0.next()? {
            Reply::Integer(integer) => Some(*integer),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<u64> {
        self.integer()?.try_into().ok()
    }

    fn units(&mut self) -> Option<u32> {
        self.integer()?.try_into().ok()
    }

    fn flag(&mut self) -> Option<bool> {
        match self.integer()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// `PTTL`: negative means no key, or no TTL.
    fn ttl(&mut self) -> Option<Option<Duration>> {
        Some(self.integer()?.try_into().ok().map(Duration::from_millis))
    }

    /// All that is left.
    fn messages(&mut self) -> Option<Vec<Message>> {
        let message = |reply: &Reply| match reply {
            Reply::Bytes(payload) => Message::parse(payload),
            _ => None,
        };
        self.0.by_ref().map(message).collect()
    }

    fn at_end(&self) -> bool {
        self.0.len() == 0
    }

    fn token(&mut self) -> Option<Token> {
        let token = self.word()?.parse().ok()?;
        (token <= Token::MAX).then_some(Token::new(token))
    }
}

fn decode<'a, T>(
    script: &Script,
    reply: &'a Reply,
    read: impl FnOnce(&mut Fields<'a>) -> Option<T>,
) -> Result<T, UnexpectedReply> {
    let decoded = match reply {
        Reply::Array(items) => {
            let mut fields = Fields(items.iter());
            read(&mut fields).filter(|_| fields.at_end())
        }
        _ => None,
    };
    decoded.ok_or_else(|| UnexpectedReply { script: script.name(), reply: shape(reply) })
}

/// The reply without its strings, which may hold attempt ids.
fn shape(reply: &Reply) -> String {
    match reply {
        Reply::Nil => "nil".to_owned(),
        Reply::Integer(integer) => integer.to_string(),
        Reply::Bytes(bytes) => format!("a string of {} bytes", bytes.len()),
        Reply::Array(items) => format!("a list of {}", items.len()),
    }
}

#[cfg(test)]
mod tests;
