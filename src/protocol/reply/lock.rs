//! What only the lock's scripts reply.

use std::time::Duration;

use super::{ServerMillis, UnexpectedReply, decode};
use crate::connection::Reply;
use crate::protocol::Script;
use crate::protocol::token::Token;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ForceReleased {
    /// The token that fences the old holder out; `None` if it did not hold the lock.
    pub(crate) token: Option<Token>,
    pub(crate) more: bool,
    pub(crate) now: ServerMillis,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inspected {
    /// Attempt id, token and what is left of the lease.
    pub(crate) holder: Option<(String, Token, Option<Duration>)>,
    pub(crate) waiters: u64,
    pub(crate) now: ServerMillis,
}

pub(crate) fn force_released(script: &Script, reply: &Reply) -> Result<ForceReleased, UnexpectedReply> {
    decode(script, reply, |fields| {
        let token = match fields.word()? {
            "RELEASED" => Some(fields.token()?),
            "NOT_HELD" => None,
            _ => return None,
        };
        Some(ForceReleased { token, more: fields.flag()?, now: fields.number()? })
    })
}

pub(crate) fn inspected(script: &Script, reply: &Reply) -> Result<Inspected, UnexpectedReply> {
    decode(script, reply, |fields| {
        let holder = fields.word()?.to_owned();
        let holder = if holder.is_empty() {
            fields.word()?;
            fields.ttl()?;
            None
        } else {
            Some((holder, fields.token()?, fields.ttl()?))
        };
        Some(Inspected { holder, waiters: fields.number()?, now: fields.number()? })
    })
}
