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
    /// As soon as a majority has accepted the token or the turn was refused, unless a missing answer could forbid the
    /// grant.
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
    /// Whether a master was asked for the turn.
    is_claim: bool,
}

impl Round {
    pub(super) fn answers(&self) -> Vec<VoteAnswer> {
        self.casts.iter().map(|cast| cast.answer).collect()
    }

    /// Whether the turn was asked for, and was not granted. Then the votes do not count, because those who wait for the
    /// turn are first.
    pub(super) fn lacks_turn(&self) -> bool {
        self.is_claim && !matches!(self.turn, TurnAnswer::Granted(_))
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
        let may_end = until == Until::Majority && self.may_end_early(&ballots);
        let is_claim = ballots.iter().any(|ballot| ballot.turn.is_some());
        let mut round = Round { is_claim, ..Round::default() };
        let mut voting = Voting::begin(self, ballots, proposal);
        loop {
            // Answers that are there are counted first. If there is none, all requests have been sent.
            let at_once = poll!(pin!(voting.next()));
            let next = match at_once {
                Poll::Ready(next) => next,
                Poll::Pending => {
                    if may_end && self.is_granted(&round, proposal.lease) {
                        round.late = Late::new(self, voting);
                        return round;
                    }
                    voting.next().await
                }
            };
            let Some((master, returned)) = next else { return round };
            round.add(returned, master);
            if may_end && matches!(round.turn, TurnAnswer::Taken) {
                // No other answer matters. The drop cancels the votes.
                return round;
            }
        }
    }

    /// Whether the answers are enough for a grant.
    fn is_granted(&self, round: &Round, lease: Duration) -> bool {
        !round.lacks_turn() && tally(self.all.len(), &round.answers(), self.now(), lease) == Verdict::Held
    }

    /// Whether no missing answer can forbid a grant. An answer does if it tells that its master votes for programs with
    /// another set of masters, or that two masters are the same server.
    fn may_end_early(&self, ballots: &[Ballot]) -> bool {
        let is_known = |ballot: &Ballot| self.all[ballot.master].standing(Standing::is_known);
        self.settings.set.is_none() && ballots.iter().all(is_known)
    }
}
