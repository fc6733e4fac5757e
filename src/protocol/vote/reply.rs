//! The replies to a request for a vote.

use std::time::Duration;

use crate::protocol::fields::Fields;
use crate::protocol::reply::ServerMillis;
use crate::protocol::token::Token;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Voted {
    pub(crate) vote: Vote,
    /// The identity of the server process. Empty if the server does not report it.
    pub(crate) run_id: Box<str>,
    /// The uptime that the process reports, which may be up to a second too long.
    pub(crate) uptime: Duration,
    pub(crate) now: ServerMillis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    /// The master took the lock, and accepted the token.
    Accepted,
    /// The master took the lock, but has seen this token, which is not smaller than the proposed one.
    Refused(Token),
    /// Another hold has the lock, with this rest of its lease.
    Busy(Option<Duration>),
    /// The request came too late, and changed nothing.
    Stale,
}

pub(in crate::protocol) fn voted(fields: &mut Fields<'_>) -> Option<Voted> {
    let vote = match fields.word()? {
        "ACCEPTED" => fields.token().map(|_| Vote::Accepted)?,
        "REFUSED" => Vote::Refused(fields.token()?),
        "BUSY" => Vote::Busy(fields.ttl()?),
        "STALE" => fields.number().map(|_| Vote::Stale)?,
        _ => return None,
    };
    let (run_id, uptime) = (fields.word()?.into(), Duration::from_secs(fields.number()?));
    Some(Voted { vote, run_id, uptime, now: fields.number()? })
}
