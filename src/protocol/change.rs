//! Giving up one hold for another one: with more or fewer units, or of another client.

use std::time::Duration;

use super::attempt_id::AttemptId;
use super::fields::Fields;
use super::reply::ServerMillis;
use super::token::Token;

/// Exchanges one hold for another with `units` units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChangeArgs {
    pub(crate) old: AttemptId,
    /// A second hold that is given up for the same new one.
    pub(crate) rest: Option<AttemptId>,
    pub(crate) new: AttemptId,
    pub(crate) units: u32,
    pub(crate) lease: Duration,
    pub(crate) not_after: ServerMillis,
    /// The token of the old hold's guard, which the new hold keeps if it has not all units. The server may know another
    /// one: the first of the guard's budget, or of the next. `None`: the new hold keeps the one that the server knows.
    pub(crate) token: Option<Token>,
}

/// The answer. `Busy`: the units are not free, and the new hold has as many as the old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    Done { token: Token, call_again: bool, now: ServerMillis },
    NotHeld { call_again: bool, now: ServerMillis },
    Busy { call_again: bool, now: ServerMillis },
    Stale { now: ServerMillis },
}

pub(super) fn changed(fields: &mut Fields<'_>) -> Option<Changed> {
    Some(match fields.word()? {
        "CHANGED" => Changed::Done { token: fields.token()?, call_again: fields.flag()?, now: fields.number()? },
        "NOT_HELD" => Changed::NotHeld { call_again: fields.flag()?, now: fields.number()? },
        "BUSY" => Changed::Busy { call_again: fields.flag()?, now: fields.number()? },
        "STALE" => Changed::Stale { now: fields.number()? },
        _ => return None,
    })
}
