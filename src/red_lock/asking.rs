//! The request to one master in a round: for its vote, and with a claim for the turn.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::acquire::pending::Terms;
use crate::engine::lease::{Term, deadline};
use crate::hold::owner::HoldOwner;
use crate::mutant::{self, Mutant};
use crate::protocol::dispatch::Failure;
use crate::protocol::reply::ServerMillis;
use crate::protocol::token::Token;
use crate::protocol::vote::reply::{Claimed, Vote, Voted};
use crate::protocol::vote::{TurnArgs, VoteArgs};
use crate::red_lock::ballot::{Ballot, Proposal, TurnBallot};
use crate::red_lock::cast::{Cast, TurnAnswer};
use crate::red_lock::count::{Validity, VoteAnswer};
use crate::red_lock::master_set::MasterSet;
use crate::red_lock::masters::Masters;
use crate::red_lock::standing::Standing;
use crate::tuning::MOST_STALE;

/// What one master has answered. Nothing, if each copy of the request came too late, because the clocks of client and
/// server run apart.
#[derive(Default)]
pub(super) struct Returned {
    pub(super) cast: Option<Cast>,
    pub(super) turn: TurnAnswer,
    /// The master votes for programs with this other set of masters.
    pub(super) other: Option<Box<str>>,
}

impl Masters {
    /// Asks one master. Returns the turn as well, if that was asked for and taken.
    pub(super) async fn ask(
        self: Arc<Self>,
        mut ballot: Ballot,
        proposal: Proposal,
        limit: Duration,
    ) -> Result<Returned, Failure> {
        let Proposal { term, lease, .. } = proposal;
        let context = self.all[ballot.master].context();
        let asked = ballot.turn.take();
        if mutant::on(Mutant::UnusedVotesLeft) {
            // Dropping the attempt cancels nothing after this.
            ballot.attempt.leave_to_cohort();
        }
        for _ in 0..=MOST_STALE {
            let mut sent = context.now();
            let lease = term.lease(lease, sent);
            let known = self.all[ballot.master].standing(Standing::known);
            let not_after = context.not_after(sent, Some(limit));
            let args = self.arguments(&ballot, Proposal { lease, ..proposal }, (not_after, known));
            let (vote, token, process) = match &asked {
                None => {
                    let Voted { vote, process } = context.scripts().vote(&ballot.keys, args).await?;
                    (Some(vote), None, process)
                }
                Some(TurnBallot { keys, attempt, lease, .. }) => {
                    let turn = TurnArgs { id: attempt.id(), lease: *lease };
                    let Claimed { vote, turn, process } =
                        context.scripts().claim(&ballot.keys, args, keys, turn).await?;
                    (vote, turn, process)
                }
            };
            context.observe(process.now());
            let from = self.learn(ballot.master, &process, known, (sent, context.now()));
            let Some(vote) = vote else {
                // The master has nothing of either attempt.
                ballot.attempt.forget();
                asked.into_iter().for_each(|mut turn| turn.attempt.forget());
                return Ok(Returned { turn: TurnAnswer::Taken, ..Returned::default() });
            };
            if mutant::on(Mutant::VoteFromAnswer) {
                sent = context.now();
            }
            let validity = Validity { until: deadline(sent, lease), from };
            let mut answer = match vote {
                Vote::Accepted => VoteAnswer::Accepted(validity),
                Vote::Refused(seen) => VoteAnswer::Refused(validity, seen),
                Vote::Busy(left) => {
                    // The master has neither a ticket nor a hold of the attempt.
                    ballot.attempt.forget();
                    VoteAnswer::Busy(left.unwrap_or(Duration::MAX), from)
                }
                Vote::Other(set) => {
                    ballot.attempt.forget();
                    return Ok(Returned { other: Some(set), ..Returned::default() });
                }
                Vote::Stale => continue,
            };
            if mutant::on(Mutant::AnswersCountAsVotes)
                && let VoteAnswer::Refused(validity, _) = answer
            {
                answer = VoteAnswer::Accepted(validity);
            }
            let turn = asked.zip(token).and_then(|(asked, token)| self.turn(ballot.master, asked, token, sent));
            let turn = turn.map_or(TurnAnswer::None, TurnAnswer::Granted);
            return Ok(Returned { cast: Some(Cast { ballot, answer, sent, lease }), turn, other: None });
        }
        Ok(Returned::default())
    }

    fn arguments<'a>(
        &'a self,
        ballot: &Ballot,
        proposal: Proposal,
        (not_after, known): (ServerMillis, u64),
    ) -> VoteArgs<'a> {
        let Proposal { token: proposal, owner, granted, lease, .. } = proposal;
        let set = self.settings.set.as_ref().map_or("", MasterSet::as_str);
        VoteArgs { id: ballot.attempt.id(), lease, proposal, owner, granted, not_after, set, known }
    }

    /// The turn that the master has granted. `None`: the client was closed meanwhile, or its lease has ended.
    fn turn(&self, master: usize, mut asked: TurnBallot, token: Token, sent: Instant) -> Option<HoldOwner> {
        let source = &self.all[master].source;
        // As long as the turn is not released, it is renewed.
        let terms = Terms { term: Term::Renewed, lease: asked.lease, replicas: 0 };
        let hold = asked.attempt.hold(1, token, terms, sent).ok().flatten()?;
        Some(HoldOwner::new(source.clone(), hold, None))
    }
}
