//! What has come of a ballot.

use std::time::{Duration, Instant};

use crate::acquire::pending::Terms;
use crate::engine::lease::Term;
use crate::hold::owner::HoldOwner;
use crate::protocol::token::Token;
use crate::red_lock::ballot::Ballot;
use crate::red_lock::count::VoteAnswer;
use crate::red_lock::masters::Masters;
use crate::red_lock::quorum_hold::Slot;

/// What has come of the request for the turn.
#[derive(Default)]
pub(super) enum TurnAnswer {
    /// No master was asked, or it gave no usable answer.
    #[default]
    None,
    /// Another acquisition has the turn or waits for it.
    Taken,
    Granted(HoldOwner),
}

/// A ballot with its answer.
pub(super) struct Cast {
    pub(super) ballot: Ballot,
    pub(super) answer: VoteAnswer,
    /// When the answered request was sent, and the lease that it asked for.
    pub(super) sent: Instant,
    pub(super) lease: Duration,
}

impl Cast {
    /// Turns the vote into a hold of the client, which renews it. `None`: the master gave no vote, the client was
    /// closed or the lease ended meanwhile. The drop cancels a vote that was refused.
    pub(super) fn hold(mut self, masters: &Masters, token: Token, term: Term) -> Option<Slot> {
        let VoteAnswer::Accepted(validity) = self.answer else { return None };
        let terms = Terms { term, lease: self.lease, replicas: 0 };
        let hold = self.ballot.attempt.hold(1, token, terms, self.sent).ok()??;
        let source = masters.all[self.ballot.master].source.clone();
        Some(Slot::voted(HoldOwner::new(source, hold, None), validity.from))
    }

    /// Whether the master took the lock.
    pub(super) fn is_taken(&self) -> bool {
        !matches!(self.answer, VoteAnswer::Busy(..))
    }
}
