//! The replies to a request for a vote.

use std::time::Duration;

use crate::protocol::fields::Fields;
use crate::protocol::reply::ServerMillis;
use crate::protocol::token::Token;

/// The answer to a request for a vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Voted {
    pub(crate) vote: Vote,
    pub(crate) process: Process,
}

/// What a master says of itself with each answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    /// The identity of the server process. Empty if the server does not report it.
    pub(crate) run_id: Box<str>,
    /// The uptime that the process reports, which may be up to a second too long.
    pub(crate) uptime: Duration,
    pub(crate) now: ServerMillis,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    /// The master took the lock, and accepted the token.
    Accepted,
    /// The master took the lock, but has seen this token, which is not smaller than the proposed one.
    Refused(Token),
    /// Another hold has the lock, with this rest of its lease. `None`: its lease has no end, which is not the work of a
    /// script.
    Busy(Option<Duration>),
    /// The request came too late, and changed nothing.
    Stale,
    /// The master votes for programs that know this other set of masters. Nothing was changed.
    Other(Box<str>),
}

/// The answer to a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Looked {
    pub(crate) sight: Sight,
    pub(crate) process: Process,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// No hold has the lock.
    Free,
    /// As [`Vote::Busy`].
    Busy(Option<Duration>),
}

pub(in crate::protocol) fn voted(fields: &mut Fields<'_>) -> Option<Voted> {
    let vote = match fields.word()? {
        "ACCEPTED" => fields.token().map(|_| Vote::Accepted)?,
        "REFUSED" => Vote::Refused(fields.token()?),
        "BUSY" => Vote::Busy(fields.ttl()?),
        "STALE" => fields.number().map(|_| Vote::Stale)?,
        "OTHER" => Vote::Other(fields.word()?.into()),
        _ => return None,
    };
    Some(Voted { vote, process: process(fields)? })
}

pub(in crate::protocol) fn looked(fields: &mut Fields<'_>) -> Option<Looked> {
    let sight = match fields.word()? {
        "FREE" => fields.number().map(|_| Sight::Free)?,
        "BUSY" => Sight::Busy(fields.ttl()?),
        _ => return None,
    };
    Some(Looked { sight, process: process(fields)? })
}

fn process(fields: &mut Fields<'_>) -> Option<Process> {
    let (run_id, uptime) = (fields.word()?.into(), Duration::from_secs(fields.number()?));
    Some(Process { run_id, uptime, now: fields.number()? })
}
