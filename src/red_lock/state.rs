//! The state of a name on each master of a RedLock.

use crate::error::Error;
use crate::inspect::HolderState;
use crate::protocol::token::Token;
use crate::red_lock::count::majority;

/// The state of a name, as read by [`RedLock::inspect`](crate::RedLock::inspect).
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RedLockState {
    /// Each master, in the order in which their clients were given.
    pub masters: Vec<MasterState>,
}

impl RedLockState {
    /// The token of the hold that a majority of the masters has accepted. `None` if no hold has a majority.
    ///
    /// Masters that do not answer, and votes that do not count yet, are not part of the majority.
    pub fn token(&self) -> Option<Token> {
        self.tokens().find(|token| self.votes_for(*token) >= majority(self.masters.len()))
    }

    /// The hold that a majority has accepted, as the first of these masters shows it, with the first label that they
    /// know: each of the holder's clients has one of its own.
    pub(super) fn holder(&self) -> Option<HolderState> {
        let token = self.token()?;
        let mut votes =
            self.masters.iter().filter_map(|master| master.vote.as_ref()).filter(|vote| vote.token == token);
        let first = votes.next()?;
        let label = first.label.clone().or_else(|| votes.find_map(|vote| vote.label.clone()));
        Some(HolderState { label, ..first.clone() })
    }

    /// Whether no hold has a majority, whatever the masters have that were not heard or do not count.
    pub(super) fn is_free(&self) -> bool {
        let unknown = self.masters.iter().filter(|master| !master.counts || master.error.is_some()).count();
        let most = self.tokens().map(|token| self.votes_for(token)).max().unwrap_or_default();
        most + unknown < majority(self.masters.len())
    }

    pub(super) fn has_votes(&self) -> bool {
        self.tokens().next().is_some()
    }

    /// The tokens that masters whose votes count have accepted.
    fn tokens(&self) -> impl Iterator<Item = Token> {
        self.masters.iter().filter(|master| master.counts).filter_map(MasterState::token)
    }

    fn votes_for(&self, token: Token) -> usize {
        self.tokens().filter(|other| *other == token).count()
    }
}

/// The state of a name on one master.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct MasterState {
    /// The hold that the master votes for. Its token is 0 if the master took the lock for a hold whose token it did not
    /// accept.
    pub vote: Option<HolderState>,
    /// The acquisition that has the turn on this master. Turns of later masters matter only while the first one does
    /// not answer.
    pub turn: Option<HolderState>,
    /// The number of acquisitions that wait for the turn in the queue of this master.
    pub waiters: u64,
    /// Whether the votes of the master count, as far as this `RedLock` knows: it has not restarted within the
    /// [longest lease](crate::RedLockBuilder::longest_lease).
    pub counts: bool,
    /// Why the master could not be asked, or is never asked. The other fields are empty then.
    #[cfg_attr(feature = "serde", serde(serialize_with = "as_text"))]
    pub error: Option<Error>,
}

/// Errors are written as text, with their causes. Nothing reads them again.
#[cfg(feature = "serde")]
fn as_text<S: serde::Serializer>(error: &Option<Error>, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    use serde::Serialize as _;

    error.as_ref().map(|error| format!("{error:#}")).serialize(serializer)
}

impl MasterState {
    fn token(&self) -> Option<Token> {
        self.vote.as_ref().map(|vote| vote.token).filter(|token| *token != Token::NONE)
    }
}

#[cfg(test)]
mod tests;
