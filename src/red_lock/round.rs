//! One round of votes: all masters are asked at the same time, and their answers are counted. The first round of an
//! acquisition may ask one of them for the turn, too.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::poll;

use crate::red_lock::asking::Returned;
use crate::red_lock::ballot::{Ballot, Proposal};
use crate::red_lock::cast::{Cast, TurnAnswer};
use crate::red_lock::count::{Verdict, VoteAnswer, tally};
use crate::red_lock::late::Late;
use crate::red_lock::masters::Masters;
use crate::red_lock::standing::Standing;
use crate::red_lock::voting::Voting;

/// When a round ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// When all have answered, or at the time limit.
    All,
    /// As soon as a majority has accepted the token, unless another answer could forbid the grant.
    Majority,
}

/// The answers to one round.
#[derive(Default)]
pub(super) struct Round {
    pub(super) casts: Vec<Cast>,
    pub(super) turn: TurnAnswer,
    /// A master that votes for programs with another set of masters, and that set.
    pub(super) other: Option<(usize, Box<str>)>,
    /// The requests that a majority did not wait for.
    pub(super) late: Option<Late>,
}

impl Round {
    pub(super) fn answers(&self) -> Vec<VoteAnswer> {
        self.casts.iter().map(|cast| cast.answer).collect()
    }

    fn add(&mut self, returned: Returned, master: usize) {
        let Returned { cast, turn, other } = returned;
        self.casts.extend(cast);
        self.other = other.map(|set| (master, set)).or(self.other.take());
        if !matches!(turn, TurnAnswer::None) {
            self.turn = turn;
        }
    }
}

impl Masters {
    /// Sends the ballots. A master that gives no usable answer within the node timeout is not asked again for a while,
    /// and its ballot is dropped.
    pub(super) async fn cast(self: &Arc<Self>, ballots: Vec<Ballot>, proposal: Proposal, until: Until) -> Round {
        let is_claim = ballots.iter().any(|ballot| ballot.turn.is_some());
        let may_end = until == Until::Majority && self.may_end_early(&ballots);
        let mut voting = Voting::begin(self, ballots, proposal);
        let mut round = Round::default();
        loop {
            // Pending means that all requests are sent, and that all answers which have come are counted.
            let at_once = poll!(pin!(voting.next()));
            let next = match at_once {
                Poll::Ready(next) => next,
                Poll::Pending => {
                    if may_end && self.is_granted(&round, is_claim, proposal.lease) {
                        round.late = Late::new(self, voting);
                        return round;
                    }
                    voting.next().await
                }
            };
            let Some((master, returned)) = next else { return round };
            round.add(returned, master);
            if matches!(round.turn, TurnAnswer::Taken) {
                // No other answer matters. The drop cancels the votes.
                return round;
            }
        }
    }

    /// Whether the answers are enough for a grant.
    fn is_granted(&self, round: &Round, is_claim: bool, lease: Duration) -> bool {
        let has_turn = !is_claim || matches!(round.turn, TurnAnswer::Granted(_));
        has_turn && tally(self.all.len(), &round.answers(), self.now(), lease) == Verdict::Held
    }

    /// Whether no answer that comes after a majority can forbid the grant. It would do so if it told that a master
    /// votes for programs with another set of masters, or that two masters are the same server.
    fn may_end_early(&self, ballots: &[Ballot]) -> bool {
        let is_known = |ballot: &Ballot| self.all[ballot.master].standing(Standing::is_known);
        self.settings.set.is_none() && ballots.iter().all(is_known)
    }
}
