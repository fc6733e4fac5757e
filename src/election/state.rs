//! Who leads.

use std::time::{Duration, SystemTime};

use uuid::Uuid;

use crate::inspect::HolderState;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::election::change::StoredChange;
use crate::protocol::election::{ElectionSeen, What};
use crate::protocol::token::Token;

/// The leader of an election.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Leader {
    /// The [label](crate::Election::label) of the candidate, or empty.
    pub label: String,
    /// The fencing token of the term.
    pub term: Token,
    /// When the term began, by the server's clock. Later than that if the clock was set back since the term before.
    /// Over a [`RedLock`](crate::RedLock), the clock of one of the masters.
    pub since: SystemTime,
    /// What the leader has [published](crate::Term::publish) last in this term.
    #[cfg_attr(feature = "serde", serde(default))]
    pub value: Option<String>,
    /// The [`Client::id`](crate::Client::id) of the leader's client, or `None` if bowline did not write the key. Over a
    /// [`RedLock`](crate::RedLock), that of one of the leader's clients.
    #[cfg_attr(feature = "serde", serde(default))]
    pub client: Option<Uuid>,
}

impl Leader {
    /// The leader that a change tells of.
    pub(super) fn told_by(change: StoredChange) -> Self {
        let StoredChange { what, term, client, label, value, .. } = change;
        let value = (what == What::Said).then_some(value);
        Self { label, term, since: since(term), value, client }
    }

    /// Who leads by the votes of several servers.
    pub(super) fn of_holder(HolderState { client, label, token: term, .. }: HolderState) -> Self {
        Self { label: label.unwrap_or_default(), term, since: since(term), value: None, client }
    }

    /// Who leads, by the hold and the last change.
    pub(super) fn of(seen: ElectionSeen) -> Option<Self> {
        let (id, term) = seen.holder?;
        match seen.changes.into_iter().next_back().filter(|change| change.term == term) {
            Some(change) => Some(Self::told_by(change)),
            // The term has just begun, or the list was lost.
            None => Some(Self {
                label: String::new(),
                term,
                since: since(term),
                value: None,
                client: AttemptId::client_of(&id),
            }),
        }
    }
}

/// A token is the time of its grant in microseconds.
fn since(term: Token) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(term.get())
}
