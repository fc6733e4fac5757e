//! The replies that only the lock's scripts give.

use std::time::Duration;

use crate::protocol::fields::Fields;
use crate::protocol::reply::ServerMillis;
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
    pub(crate) now: ServerMillis,
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
    let holder = fields.word()?.to_owned();
    let holder = if holder.is_empty() {
        fields.word()?;
        fields.ttl()?;
        None
    } else {
        Some((holder, fields.token()?, fields.ttl()?))
    };
    Some(Inspected { holder, waiters: fields.number()?, now: fields.number()? })
}
