//! The replies that only the scripts of runs give.

use std::time::Duration;

use uuid::Uuid;

use crate::protocol::attempt_id::AttemptId;
use crate::protocol::fields::{self, Fields};
use crate::protocol::reply::ServerMillis;
use crate::protocol::token::Token;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunInspected {
    /// The rest of the lease of the hold, if there is one.
    pub(crate) holds_for: Option<Duration>,
    /// `None` if there was no run, or none that a script wrote.
    pub(crate) last: Option<StoredRun>,
    pub(crate) now: ServerMillis,
}

/// What the server stores of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredRun {
    pub(crate) token: Token,
    pub(crate) began: ServerMillis,
    pub(crate) ended: Option<(ServerMillis, bool)>,
    pub(crate) client: Option<Uuid>,
    /// Whether the hold is that of the run.
    pub(crate) holds: bool,
}

pub(in crate::protocol) fn run_inspected(fields: &mut Fields<'_>) -> Option<RunInspected> {
    let (holder, ttl, last) = (fields.word()?, fields.ttl()?, fields.word()?);
    let holds_for = (!holder.is_empty()).then(|| ttl.unwrap_or_default());
    Some(RunInspected { holds_for, last: stored(last, holder), now: fields.number()? })
}

fn stored(text: &str, holder: &str) -> Option<StoredRun> {
    let mut parts = text.split(' ');
    let token = fields::token(parts.next()?.parse().ok()?)?;
    let began = parts.next()?.parse().ok()?;
    let ended = parts.next()?.parse().ok()?;
    let ended = match parts.next()? {
        "running" => None,
        "done" => Some((ended, true)),
        "failed" => Some((ended, false)),
        _ => return None,
    };
    let id = parts.next()?;
    Some(StoredRun { token, began, ended, client: AttemptId::client_of(id), holds: id == holder })
}
