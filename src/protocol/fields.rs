//! The fields of a reply. An unexpected shape is an error, never a panic.

use std::time::Duration;

use super::message::Message;
use super::script::Script;
use super::token::Token;
use crate::connection::Reply;

/// A reply that the script never gives: another program answers, or the script and this table disagree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{script} replied {reply}")]
pub(crate) struct UnexpectedReply {
    pub(super) script: &'static str,
    pub(super) reply: String,
}

/// Reads the fields of a reply in order; all of them have to be read.
pub(super) struct Fields<'a> {
    items: std::slice::Iter<'a, Reply>,
    entries: usize,
}

impl<'a> Fields<'a> {
    /// How many entries the reply has by the call, for calls about several holds or tickets.
    pub(super) fn entries(&self) -> usize {
        self.entries
    }

    pub(super) fn word(&mut self) -> Option<&'a str> {
        match self.items.next()? {
            Reply::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    pub(super) fn integer(&mut self) -> Option<i64> {
        match self.items.next()? {
            Reply::Integer(integer) => Some(*integer),
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

    /// `PTTL`: negative means no key, or no TTL.
    pub(super) fn ttl(&mut self) -> Option<Option<Duration>> {
        Some(self.integer()?.try_into().ok().map(Duration::from_millis))
    }

    /// All that is left.
    pub(super) fn messages(&mut self) -> Option<Vec<Message>> {
        let message = |reply: &Reply| match reply {
            Reply::Bytes(payload) => Message::parse(payload),
            _ => None,
        };
        self.items.by_ref().map(message).collect()
    }

    pub(super) fn at_end(&self) -> bool {
        self.items.len() == 0
    }

    pub(super) fn token(&mut self) -> Option<Token> {
        let token = self.word()?.parse().ok()?;
        (token <= Token::MAX).then_some(Token::new(token))
    }
}

pub(super) fn decode<T>(
    script: &Script,
    reply: &Reply,
    entries: usize,
    read: fn(&mut Fields<'_>) -> Option<T>,
) -> Result<T, UnexpectedReply> {
    let decoded = match reply {
        Reply::Array(items) => {
            let mut fields = Fields { items: items.iter(), entries };
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
