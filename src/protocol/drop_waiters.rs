//! Removing tickets from a queue, for operators.

use uuid::Uuid;

use super::fields::Fields;
use super::reply::{ServerMillis, Timed};

/// The arguments of a call that drops waiters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DropArgs {
    /// `None`: those of all clients.
    pub(crate) client: Option<Uuid>,
    /// From which place in the queue on.
    pub(crate) first: u64,
    pub(crate) not_after: ServerMillis,
}

/// What became of the part of the queue that one call looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dropped {
    pub(crate) tickets: u64,
    /// From which place on tickets were not looked at.
    pub(crate) next_first: u64,
    /// How many those are.
    pub(crate) unseen: u64,
    pub(crate) call_again: bool,
}

pub(super) fn dropped(fields: &mut Fields<'_>) -> Option<Timed<Dropped>> {
    let dropped = match fields.word()? {
        "DROPPED" => Some(Dropped {
            tickets: fields.number()?,
            next_first: fields.number()?,
            unseen: fields.number()?,
            call_again: fields.flag()?,
        }),
        "STALE" => None,
        _ => return None,
    };
    Some((dropped, fields.number()?))
}
