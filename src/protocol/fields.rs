//! The fields of a reply. An unexpected shape is an error, never a panic.

use std::time::Duration;

use super::message::Message;
use super::script::Script;
use super::ticket::Ticket;
use super::token::Token;
use crate::connection::Reply;

/// A reply that the script never gives. Either another program answered, or the script and this module disagree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{script} replied {reply}")]
pub(crate) struct UnexpectedReply {
    pub(super) script: &'static str,
    pub(super) reply: String,
}

/// Reads the fields of a reply in order. All of them have to be read.
pub(super) struct Fields<'a> {
    /// The reply, if it is a number instead of a list.
    short: Option<i64>,
    /// The reply, if it is a text and no list.
    text: Option<&'a str>,
    items: std::slice::Iter<'a, Reply>,
    entries: usize,
}

impl<'a> Fields<'a> {
    /// The number of entries that the reply to this call has, for calls about several holds or tickets.
    pub(super) fn entries(&self) -> usize {
        self.entries
    }

    /// The short form of a reply: a number instead of a list.
    pub(super) fn short(&mut self) -> Option<i64> {
        self.short.take()
    }

    /// The short form of a reply that has two numbers: a text and no list.
    pub(super) fn short_pair(&mut self) -> Option<(u64, u64)> {
        let (first, second) = self.text.take()?.split_once(' ')?;
        Some((first.parse().ok()?, second.parse().ok()?))
    }

    pub(super) fn word(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        match self.items.next()? {
            Reply::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    pub(super) fn integer(&mut self) -> Option<i64> {
        match self.items.next()? {
            Reply::Integer(integer) => Some(*integer),
            _ => None,
        }
    }

    /// A text or a number. A text that is not a token is accepted.
    pub(super) fn stored(&mut self) -> Option<Stored> {
        match self.items.next()? {
            Reply::Bytes(bytes) => Some(Stored::Token(std::str::from_utf8(bytes).ok().and_then(token_in))),
            Reply::Integer(integer) => Some(Stored::Integer(*integer)),
            _ => None,
        }
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        self.integer()?.try_into().ok()
    }

    pub(super) fn units(&mut self) -> Option<u32> {
        self.integer()?.try_into().ok()
    }

    pub(super) fn flag(&mut self) -> Option<bool> {
        match self.integer()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// Reads a `PTTL`. A negative number means that there is no key or that it has no TTL.
    pub(super) fn ttl(&mut self) -> Option<Option<Duration>> {
        Some(self.integer()?.try_into().ok().map(Duration::from_millis))
    }

    /// Reads all remaining fields, which are messages.
    pub(super) fn messages(&mut self) -> Option<Vec<Message>> {
        let message = |reply: &Reply| match reply {
            Reply::Bytes(payload) => Message::parse(payload),
            _ => None,
        };
        self.items.by_ref().map(message).collect()
    }

    /// Reads all remaining fields, which are tickets. Those that no script wrote are left out.
    pub(super) fn tickets(&mut self) -> Option<Vec<Ticket>> {
        let mut tickets = Vec::new();
        while !self.at_end() {
            tickets.extend(Ticket::parse(self.word()?));
        }
        Some(tickets)
    }

    pub(super) fn at_end(&self) -> bool {
        self.items.len() == 0 && self.short.is_none() && self.text.is_none()
    }

    pub(super) fn token(&mut self) -> Option<Token> {
        token_in(self.word()?)
    }
}

/// What the server stores with a hold, or a number that says why it stores nothing.
pub(super) enum Stored {
    Token(Option<Token>),
    Integer(i64),
}

pub(super) fn token_in(text: &str) -> Option<Token> {
    token(text.parse().ok()?)
}

/// A token, if it is one that the scripts can write.
pub(super) fn token(number: u64) -> Option<Token> {
    (number <= Token::MAX).then_some(Token::new(number))
}

pub(super) fn decode<T>(
    script: &Script,
    reply: &Reply,
    entries: usize,
    read: fn(&mut Fields<'_>) -> Option<T>,
) -> Result<T, UnexpectedReply> {
    let fields = match reply {
        Reply::Array(items) => Some(Fields { short: None, text: None, items: items.iter(), entries }),
        Reply::Integer(number) => Some(Fields { short: Some(*number), text: None, items: [].iter(), entries }),
        Reply::Bytes(bytes) => {
            let text = std::str::from_utf8(bytes).ok();
            text.map(|text| Fields { short: None, text: Some(text), items: [].iter(), entries })
        }
        Reply::Nil => None,
    };
    let decoded = fields.and_then(|mut fields| read(&mut fields).filter(|_| fields.at_end()));
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
