//! The replies that only the lock's scripts give.

use std::time::Duration;

use crate::protocol::fields::{Fields, token_in};
use crate::protocol::reply::ServerMillis;
use crate::protocol::ticket::Ticket;
use crate::protocol::token::Token;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ForceReleased {
    /// The token by which storage can reject the old holder. `None` if it did not hold the lock.
    pub(crate) token: Option<Token>,
    pub(crate) call_again: bool,
    pub(crate) now: ServerMillis,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inspected {
    /// The attempt id, the token and the rest of the lease.
    pub(crate) holder: Option<(String, Token, Option<Duration>)>,
    pub(crate) waiters: u64,
    /// The first tickets of the queue, without those that no script wrote.
    pub(crate) queue: Vec<Ticket>,
    pub(crate) now: ServerMillis,
}

impl Inspected {
    pub(crate) fn holder_id(&self) -> Option<&str> {
        self.holder.as_ref().map(|(id, ..)| &**id)
    }
}

pub(in crate::protocol) fn force_released(fields: &mut Fields<'_>) -> Option<ForceReleased> {
    let token = match fields.word()? {
        "RELEASED" => Some(fields.token()?),
        "NOT_HELD" => None,
        _ => return None,
    };
    Some(ForceReleased { token, call_again: fields.flag()?, now: fields.number()? })
}

pub(in crate::protocol) fn inspected(fields: &mut Fields<'_>) -> Option<Inspected> {
    let now = fields.number()?;
    let (holder, token) = (fields.word()?, fields.word()?);
    let remaining = fields.ttl()?;
    let holder = match holder {
        "" => None,
        id => Some((id.to_owned(), token_in(token)?, remaining)),
    };
    Some(Inspected { holder, waiters: fields.number()?, queue: fields.tickets()?, now })
}
