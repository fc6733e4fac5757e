//! One round of votes: all masters are asked at the same time, and their answers are counted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::acquire::pending::PendingAttempt;
use crate::engine::lease::{Term, deadline};
use crate::mutant::{self, Mutant};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::dispatch::Failure;
use crate::protocol::key::Keys;
use crate::protocol::token::Token;
use crate::protocol::vote::VoteArgs;
use crate::protocol::vote::reply::Vote;
use crate::red_lock::count::{Validity, VoteAnswer};
use crate::red_lock::master_set::MasterSet;
use crate::red_lock::masters::Masters;
use crate::red_lock::together::together;
use crate::tuning::MOST_STALE;

/// The proposal that masters vote on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proposal {
    pub(super) token: Token,
    /// Identifies the hold on all masters.
    pub(super) owner: AttemptId,
    /// Whether the hold has been granted, and asks for votes that it lacks.
    pub(super) granted: bool,
    pub(super) term: Term,
    pub(super) lease: Duration,
}

/// An attempt to get the vote of one master. If it is dropped, the attempt is cancelled in the background.
pub(super) struct Ballot<'a> {
    pub(super) master: usize,
    pub(super) keys: &'a Arc<Keys>,
    pub(super) attempt: PendingAttempt<'a>,
}

/// A ballot with its answer.
pub(super) struct Cast<'a> {
    pub(super) ballot: Ballot<'a>,
    pub(super) answer: VoteAnswer,
    /// When the answered request was sent, and the lease that it asked for.
    pub(super) sent: Instant,
    pub(super) lease: Duration,
}

impl Cast<'_> {
    /// Whether the master took the lock.
    pub(super) fn is_taken(&self) -> bool {
        !matches!(self.answer, VoteAnswer::Busy(..))
    }
}

/// The answers to one round.
#[derive(Default)]
pub(super) struct Round<'a> {
    pub(super) casts: Vec<Cast<'a>>,
    /// A master that votes for programs with another set of masters, and that set.
    pub(super) other: Option<(usize, Box<str>)>,
}

/// The outcome of one ballot.
enum Returned<'a> {
    Cast(Cast<'a>),
    /// Each copy of the request came too late, because the clocks of client and server run apart.
    Late,
    /// The master votes for programs with this other set of masters.
    Other(Box<str>),
}

impl Round<'_> {
    pub(super) fn answers(&self) -> Vec<VoteAnswer> {
        self.casts.iter().map(|cast| cast.answer).collect()
    }
}

impl Masters {
    /// Opens a ballot for each of these masters that serves the name. A master whose client is closed gets none.
    pub(super) fn ballots<'a>(
        &'a self,
        keys: &'a [Arc<Keys>],
        of: impl Iterator<Item = usize>,
        lease: Duration,
    ) -> Vec<Ballot<'a>> {
        let open = |master: usize| {
            let attempt = PendingAttempt::open(self.all[master].context(), &keys[master], 1, lease);
            attempt.ok().map(|attempt| Ballot { master, keys: &keys[master], attempt })
        };
        let now = self.now();
        of.filter(|master| self.all[*master].serves(&keys[*master], now)).filter_map(open).collect()
    }

    /// Sends the ballots. A master that gives no usable answer within the node timeout is not asked again for a while,
    /// and its ballot is dropped.
    pub(super) async fn cast<'a>(self: &Arc<Self>, ballots: Vec<Ballot<'a>>, proposal: Proposal) -> Round<'a> {
        let times = (self.now(), self.node_timeout(proposal.lease));
        let asked: Vec<_> = ballots.iter().map(|ballot| (ballot.master, ballot.keys)).collect();
        let votes = ballots.into_iter().map(|ballot| self.vote(ballot, proposal, times.1));
        let votes = together(self.executor(), times.1, votes).await;
        let mut round = Round::default();
        for ((master, keys), vote) in asked.into_iter().zip(votes) {
            match self.answered(master, keys, vote, times) {
                Some(Returned::Cast(cast)) => round.casts.push(cast),
                Some(Returned::Other(set)) => round.other = Some((master, set)),
                Some(Returned::Late) | None => {}
            }
        }
        round
    }

    /// The usable answer of a master to a request with these keys, whose time limit was `limit`. Without one, the
    /// master is not asked again for a while.
    pub(super) fn answered<T>(
        self: &Arc<Self>,
        master: usize,
        keys: &Arc<Keys>,
        answer: Option<Result<T, Failure>>,
        (sent, limit): (Instant, Duration),
    ) -> Option<T> {
        match answer {
            Some(Ok(answer)) => {
                self.all[master].served(keys);
                return Some(answer);
            }
            Some(Err(failure)) => {
                self.set_failed(master, keys, (failure.kind(), failure.to_string()), (sent, limit));
            }
            None => self.set_silent(master, keys, None, (sent, limit)),
        }
        None
    }

    /// Asks one master.
    async fn vote<'a>(
        &self,
        mut ballot: Ballot<'a>,
        proposal: Proposal,
        limit: Duration,
    ) -> Result<Returned<'a>, Failure> {
        let Proposal { token, owner, granted, term, lease } = proposal;
        let context = self.all[ballot.master].context();
        let set = self.settings.set.as_ref().map_or("", MasterSet::as_str);
        if mutant::on(Mutant::UnusedVotesLeft) {
            // Dropping the attempt cancels nothing after this.
            ballot.attempt.leave_to_cohort();
        }
        for _ in 0..=MOST_STALE {
            let mut sent = context.now();
            let lease = term.lease(lease, sent);
            let not_after = context.not_after(sent, Some(limit));
            let args = VoteArgs { id: ballot.attempt.id(), lease, proposal: token, owner, granted, not_after, set };
            let voted = context.scripts().vote(ballot.keys, args).await?;
            context.observe(voted.process.now);
            let from = self.learn(ballot.master, &voted.process, context.now());
            if mutant::on(Mutant::VoteFromAnswer) {
                sent = context.now();
            }
            let validity = Validity { until: deadline(sent, lease), from };
            let mut answer = match voted.vote {
                Vote::Accepted => VoteAnswer::Accepted(validity),
                Vote::Refused(seen) => VoteAnswer::Refused(validity, seen),
                Vote::Busy(left) => {
                    // The master has neither a ticket nor a hold of the attempt.
                    ballot.attempt.forget();
                    VoteAnswer::Busy(left.unwrap_or(Duration::MAX), from)
                }
                Vote::Other(set) => {
                    ballot.attempt.forget();
                    return Ok(Returned::Other(set));
                }
                Vote::Stale => continue,
            };
            if mutant::on(Mutant::AnswersCountAsVotes)
                && let VoteAnswer::Refused(validity, _) = answer
            {
                answer = VoteAnswer::Accepted(validity);
            }
            return Ok(Returned::Cast(Cast { ballot, answer, sent, lease }));
        }
        Ok(Returned::Late)
    }
}
