//! One round of votes: all masters are asked at the same time, and their answers are counted. The first round of an
//! acquisition may ask one of them for the turn, too.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::acquire::pending::{PendingAttempt, Terms};
use crate::engine::lease::{Term, deadline};
use crate::error::ErrorKind;
use crate::hold::owner::HoldOwner;
use crate::mutant::{self, Mutant};
use crate::observe::meter::Metered;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::dispatch::Failure;
use crate::protocol::key::Keys;
use crate::protocol::reply::ServerMillis;
use crate::protocol::token::Token;
use crate::protocol::vote::reply::{Claimed, Vote, Voted};
use crate::protocol::vote::{TurnArgs, VoteArgs};
use crate::red_lock::count::{Validity, VoteAnswer};
use crate::red_lock::master_set::MasterSet;
use crate::red_lock::masters::Masters;
use crate::red_lock::quorum_hold::Slot;
use crate::red_lock::standing::Standing;
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
    /// The turn that the master is asked for in the same step.
    pub(super) turn: Option<TurnBallot<'a>>,
}

/// An attempt to get the turn together with a vote.
pub(super) struct TurnBallot<'a> {
    pub(super) operation: &'static str,
    pub(super) keys: &'a Arc<Keys>,
    pub(super) attempt: PendingAttempt<'a>,
    pub(super) lease: Duration,
}

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
pub(super) struct Cast<'a> {
    pub(super) ballot: Ballot<'a>,
    pub(super) answer: VoteAnswer,
    /// When the answered request was sent, and the lease that it asked for.
    pub(super) sent: Instant,
    pub(super) lease: Duration,
}

impl Cast<'_> {
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

/// The answers to one round.
#[derive(Default)]
pub(super) struct Round<'a> {
    pub(super) casts: Vec<Cast<'a>>,
    pub(super) turn: TurnAnswer,
    /// A master that votes for programs with another set of masters, and that set.
    pub(super) other: Option<(usize, Box<str>)>,
}

/// What one master has answered. Nothing, if each copy of the request came too late, because the clocks of client and
/// server run apart.
#[derive(Default)]
struct Returned<'a> {
    cast: Option<Cast<'a>>,
    turn: TurnAnswer,
    /// The master votes for programs with this other set of masters.
    other: Option<Box<str>>,
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
            attempt.ok().map(|attempt| Ballot { master, keys: &keys[master], attempt, turn: None })
        };
        let now = self.now();
        of.filter(|master| self.all[*master].serves(&keys[*master], now)).filter_map(open).collect()
    }

    /// Sends the ballots. A master that gives no usable answer within the node timeout is not asked again for a while,
    /// and its ballot is dropped.
    pub(super) async fn cast<'a>(self: &Arc<Self>, ballots: Vec<Ballot<'a>>, proposal: Proposal) -> Round<'a> {
        let times = (self.now(), self.node_timeout(proposal.lease));
        let asked: Vec<_> = ballots
            .iter()
            .map(|ballot| (ballot.master, ballot.keys, ballot.turn.as_ref().map(|turn| turn.keys)))
            .collect();
        let votes = ballots.into_iter().map(|ballot| self.vote(ballot, proposal, times.1));
        let votes = together(self.executor(), times.1, votes).await;
        let mut round = Round::default();
        for ((master, keys, turns), vote) in asked.into_iter().zip(votes) {
            let answer = match turns {
                None => self.answered(master, keys, vote, times),
                Some(turns) => self.claim_answered(master, (turns, keys), vote, times),
            };
            let Returned { cast, turn, other } = answer.unwrap_or_default();
            round.casts.extend(cast);
            round.other = other.map(|set| (master, set)).or(round.other);
            if turns.is_some() {
                round.turn = turn;
            }
        }
        round
    }

    /// As [`answered`](Self::answered), for a request for the turn and a vote.
    fn claim_answered<T>(
        self: &Arc<Self>,
        master: usize,
        (turns, votes): (&Arc<Keys>, &Arc<Keys>),
        answer: Option<Result<T, Failure>>,
        times: (Instant, Duration),
    ) -> Option<T> {
        match &answer {
            Some(Ok(_)) => self.all[master].served(turns),
            // The answer does not tell which of the two the master does not serve. Requests for one of them will.
            Some(Err(failure)) if !matches!(failure.kind(), ErrorKind::Unavailable | ErrorKind::Refused) => {
                return None;
            }
            Some(Err(_)) => {}
            None => self.set_silent(master, turns, None, times),
        }
        self.answered(master, votes, answer, times)
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

    /// Asks one master. Returns the turn as well, if that was asked for and taken.
    async fn vote<'a>(
        &self,
        mut ballot: Ballot<'a>,
        proposal: Proposal,
        limit: Duration,
    ) -> Result<Returned<'a>, Failure> {
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
                    let Voted { vote, process } = context.scripts().vote(ballot.keys, args).await?;
                    (Some(vote), None, process)
                }
                Some(TurnBallot { keys, attempt, lease, .. }) => {
                    let turn = TurnArgs { id: attempt.id(), lease: *lease };
                    let Claimed { vote, turn, process } =
                        context.scripts().claim(ballot.keys, args, keys, turn).await?;
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
        ballot: &Ballot<'_>,
        proposal: Proposal,
        (not_after, known): (ServerMillis, u64),
    ) -> VoteArgs<'a> {
        let Proposal { token: proposal, owner, granted, lease, .. } = proposal;
        let set = self.settings.set.as_ref().map_or("", MasterSet::as_str);
        VoteArgs { id: ballot.attempt.id(), lease, proposal, owner, granted, not_after, set, known }
    }

    /// The turn that the master has granted. `None`: the client was closed meanwhile, or its lease has ended.
    fn turn(&self, master: usize, mut asked: TurnBallot<'_>, token: Token, sent: Instant) -> Option<HoldOwner> {
        let source = &self.all[master].source;
        // As long as the turn is not released, it is renewed.
        let terms = Terms { term: Term::Renewed, lease: asked.lease, replicas: 0 };
        let hold = asked.attempt.hold(1, token, terms, sent).ok().flatten()?;
        let metered = Metered::held(source.context.observed(asked.operation, &hold.keys));
        Some(HoldOwner::new(source.clone(), hold, None).metered(Some(metered)))
    }
}
