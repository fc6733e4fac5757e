//! Removing tickets from a queue, for operators.

use uuid::Uuid;

use super::fields::Fields;
use super::reply::ServerMillis;

/// The arguments of a call that drops waiters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DropArgs {
    /// `None`: those of all clients.
    pub(crate) client: Option<Uuid>,
    /// From which place in the queue on.
    pub(crate) first: u64,
    pub(crate) not_after: ServerMillis,
}

/// The answer. One call looks at a part of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dropped {
    Dropped {
        tickets: u64,
        /// From which place on tickets were not looked at, and how many those are.
        next_first: u64,
        unseen: u64,
        call_again: bool,
        now: ServerMillis,
    },
    Stale {
        now: ServerMillis,
    },
}

pub(super) fn dropped(fields: &mut Fields<'_>) -> Option<Dropped> {
    Some(match fields.word()? {
        "DROPPED" => Dropped::Dropped {
            tickets: fields.number()?,
            next_first: fields.number()?,
            unseen: fields.number()?,
            call_again: fields.flag()?,
            now: fields.number()?,
        },
        "STALE" => Dropped::Stale { now: fields.number()? },
        _ => return None,
    })
}
