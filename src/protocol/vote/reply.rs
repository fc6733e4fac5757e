//! The replies to a request for a vote.

use std::time::Duration;

use crate::protocol::fields::{self, Fields};
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
    /// Which process it is. `None`: the one that the caller knew.
    pub(crate) identity: Option<Identity>,
    /// When the process has last saved its data, or started, in seconds by its clock. 0 if it does not report it.
    pub(crate) saved: u64,
    /// The server's clock, in microseconds.
    pub(crate) micros: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Empty if the server does not report it.
    pub(crate) run_id: Box<str>,
    /// The uptime that the process reports, which may be up to a second too long.
    pub(crate) uptime: Duration,
}

impl Process {
    pub(crate) fn now(&self) -> ServerMillis {
        self.micros / 1000
    }
}

/// The answer to a request for the turn and a vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claimed {
    /// `None`: another acquisition has the turn or waits for it. Nothing was changed.
    pub(crate) vote: Option<Vote>,
    /// The token of the turn, if it was taken.
    pub(crate) turn: Option<Token>,
    pub(crate) process: Process,
}

/// The answer to the release of a vote and the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    /// Whether the attempt had the vote.
    pub(crate) was_held: bool,
    /// Whether the turn is left as it was, because somebody waits for it.
    pub(crate) is_waited_for: bool,
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
    if let Some(process) = known(fields) {
        return Some(Voted { vote: Vote::Accepted, process });
    }
    let vote = vote(fields.word()?, fields)?;
    Some(Voted { vote, process: process(fields)? })
}

pub(in crate::protocol) fn claimed(fields: &mut Fields<'_>) -> Option<Claimed> {
    if let Some(process) = known(fields) {
        let turn = Some(fields::token(process.micros)?);
        return Some(Claimed { vote: Some(Vote::Accepted), turn, process });
    }
    let vote = match fields.word()? {
        "TAKEN" => fields.number().map(|_| None)?,
        word => Some(vote(word, fields)?),
    };
    let process = process(fields)?;
    let turn = if fields.at_end() { None } else { Some(fields.token()?) };
    Some(Claimed { vote, turn, process })
}

pub(in crate::protocol) fn left(fields: &mut Fields<'_>) -> Option<Left> {
    Some(Left { was_held: fields.flag()?, is_waited_for: fields.flag()? })
}

fn vote(word: &str, fields: &mut Fields<'_>) -> Option<Vote> {
    Some(match word {
        "ACCEPTED" => fields.token().map(|_| Vote::Accepted)?,
        "REFUSED" => Vote::Refused(fields.token()?),
        "BUSY" => Vote::Busy(fields.ttl()?),
        "STALE" => fields.number().map(|_| Vote::Stale)?,
        "OTHER" => Vote::Other(fields.word()?.into()),
        _ => return None,
    })
}

pub(in crate::protocol) fn looked(fields: &mut Fields<'_>) -> Option<Looked> {
    let sight = match fields.word()? {
        "FREE" => fields.number().map(|_| Sight::Free)?,
        "BUSY" => Sight::Busy(fields.ttl()?),
        _ => return None,
    };
    Some(Looked { sight, process: process(fields)? })
}

/// The short form of a reply, by a process that the caller knows: its clock.
fn known(fields: &mut Fields<'_>) -> Option<Process> {
    let micros = fields.short()?.try_into().ok()?;
    Some(Process { identity: None, saved: 0, micros })
}

fn process(fields: &mut Fields<'_>) -> Option<Process> {
    let (run_id, uptime): (Box<str>, _) = (fields.word()?.into(), Duration::from_secs(fields.number()?));
    let identity = (*run_id != *"=").then_some(Identity { run_id, uptime });
    Some(Process { identity, saved: fields.number()?, micros: fields.number()? })
}
