//! One acquisition of a `RedLock`: first the turn, then rounds of votes until a majority has accepted the token. While
//! nobody is in the way, the turn and the first round take one request to each master.
//!
//! Each master has two locks of a name. The *turn* is an ordinary lock with a queue, used on the first master that
//! serves the name. The *vote* has no queue, but a counter: the largest token that the master has accepted. Only the
//! votes exclude. The turn orders the acquisitions, and lets one of them ask for votes at a time.
//!
//! | the acquisition | what is sent | becomes, on |
//! |---|---|---|
//! | claims | `vote` to all masters that serve the name, and to the first one `vote_claim`, which takes the turn as well ([`claim`]) | asks, with the outcome of a first round, if it got the turn; otherwise waits for the turn, and the votes are cancelled |
//! | waits for the turn | an ordinary acquisition; probes if the master is silent ([`take_turn`]) | asks, once it has the turn; waits on the next master if this one does not serve the name |
//! | asks | `vote` to all masters that serve the name, with the token of the turn ([`elect`]) | granted if a majority took the lock and accepted the token; asks a second time if a majority took it, but masters have seen larger tokens; contested if other holds prevent a majority; otherwise asks again after a pause |
//! | asks a second time | `vote` to the masters that took the lock, with a token larger than all that they have seen | granted; contested; or asks again after a pause |
//! | is contested | `view` after each pause, which changes nothing ([`Masters::look`]) | asks, when a majority is free; waits for a turn anew if an earlier master serves the name again |
//! | is granted, as soon as a majority has voted | the requests of the round that have no answer yet go on, and their votes join the hold ([`Late`](super::late::Late)); renewals of each vote, by the client of its master; `vote` with the token of the hold, to masters that have not voted ([`QuorumTask`]) | released by its owner; lost at its deadline, or when the clients are closed |
//!
//! No claim is made where it would most likely be refused ([`Contended`](super::contended::Contended)), nor while the
//! clock of the first master is not known, by which it proposes a token.
//!
//! A try ends with `None` where it would wait for the turn, or where it is contested and stays so for a few looks: a
//! claim that was refused gives its votes back a moment later. The turn is kept until the hold ends; an
//! acquisition that loses it before the grant waits for a turn anew. A master without a usable answer is passed over
//! until a probe has been answered (`health`). If there is no majority for the retry timeout, the acquisition fails
//! ([`Patience`]).
//!
//! # What a dropped future leaves
//! The turn is a [`HoldOwner`], whose drop releases it. Each vote that was asked for is an attempt in a `Ballot`, whose
//! drop cancels it in the background. If the hold is over before a late vote is known, its release is sent behind the
//! request for it ([`Voting::give_back`](super::voting::Voting::give_back)). A round without a majority is dropped
//! likewise. A master that cannot be reached keeps the vote until its lease ends. Once the hold is granted, its
//! [`QuorumTask`] has the votes and the turn, and there is no await before the hold has an owner. The task releases the
//! votes first. Then it releases the turn, and the server grants that to the next acquisition, which finds a majority
//! of the votes free. If no acquisition waits for the turn, the task releases the turn and the vote of that master by
//! one request.
//!
//! # Why it is correct (`docs/quorum.md` tells how this was checked)
//! - *At most one guard is valid.* Two majorities share a master, and its lock is taken for one hold at a time. Each
//!   vote counts from before its request was sent, on the monotonic clock, and less the drift of the clocks. The
//!   deadline of the hold is the time until which a majority of its votes lasts (`count`). So the shared master cannot
//!   vote for another hold before.
//! - *A restart does not give a vote twice.* Each answer tells how long the server has been up. The vote of a master
//!   that has been up for less than the longest lease counts later: by then, the holds that it may have lost are over
//!   (`standing`). Servers that are declared durable have lost none.
//! - *Tokens grow.* A master accepts a token in the script that takes its lock, and only if the token is larger than
//!   all that it has accepted before. So the master that two majorities share orders their tokens. The proposal grows
//!   with the time for which the acquisition has had the turn: masters that have lost their counters would accept an
//!   old one.
//! - *A vote that is given later does no harm.* A hold asks for it with its own token, and says that it was granted
//!   only while a majority has it. Meanwhile no later hold can have been granted.
//! - *Nobody is passed by.* A hold needs the turn, also if it was claimed, and only a free turn that nobody waits for
//!   can be claimed.
//! - *Acquisitions seldom split the votes.* One has the turn, and a contested one only looks. A claim that is refused
//!   has the free votes for the time of a cancellation; the turn then asks again a moment later. If programs reach
//!   different first masters, there are two queues, until the acquisition with the later master gives up its turn.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, Either, select};

use crate::acquire::member::InCohort;
use crate::acquire::request::Request;
use crate::backoff::Pauses;
use crate::engine::lease::Hold;
use crate::engine::turn::Closed;
use crate::error::{ErrorKind, Result};
use crate::hold::owner::HoldOwner;
use crate::hold::quorum::{Ends, Quorum, QuorumGrant};
use crate::inspect::HolderState;
use crate::mutex::lock;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::key::Keys;
use crate::protocol::kind::Kind;
use crate::red_lock::ballot::Proposal;
use crate::red_lock::claim::{Claim, claim};
use crate::red_lock::count::{Lack, majority};
use crate::red_lock::election::{Elected, Outcome, elect};
use crate::red_lock::leaving::Rest;
use crate::red_lock::masters::Masters;
use crate::red_lock::own::Own;
use crate::red_lock::patience::{Patience, reason, unavailable};
use crate::red_lock::quorum_hold::QuorumHold;
use crate::red_lock::quorum_task::QuorumTask;
use crate::red_lock::turn::take_turn;
use crate::tuning::{HOLD_ENDS, TRY_LOOKS, VOTE, VOTE_AGAIN};

impl Quorum for Masters {
    fn lack(&self, name: &str) -> Option<String> {
        let votes = self.keys(Kind::Vote, name).ok()?;
        self.majority_gone(&votes, self.now()).map(|_| reason(self, name))
    }

    fn acquire<'a>(
        self: Arc<Self>,
        request: &'a Request,
        until: Option<Instant>,
    ) -> BoxFuture<'a, Result<Option<QuorumGrant>>> {
        Box::pin(async move { acquire(&self, request, until).await })
    }

    fn holder<'a>(&'a self, operation: &'static str, name: &'a str) -> BoxFuture<'a, Result<Option<HolderState>>> {
        Box::pin(self.holder(operation, name))
    }
}

async fn acquire(masters: &Arc<Masters>, request: &Request, until: Option<Instant>) -> Result<Option<QuorumGrant>> {
    check(masters, request)?;
    let name = &request.keys.name;
    let keys = |kind| masters.keys(kind, name).map_err(|error| error.during(request.operation));
    let keys = (&*keys(Kind::Turn)?, &*keys(Kind::Vote)?);
    let patience = Patience::new(masters);
    let asking = pin!(ask(masters, request, keys, until, &patience));
    // What is under way is dropped, and so cancelled in the background.
    match select(asking, pin!(patience.over(masters, keys.1))).await {
        Either::Left((granted, _)) => granted,
        Either::Right(_) => Err(unavailable(masters, request)),
    }
}

/// Claims the lock, or takes the turn and asks for votes, until the request is granted.
async fn ask(
    masters: &Arc<Masters>,
    request: &Request,
    (turns, votes): (&[Arc<Keys>], &[Arc<Keys>]),
    until: Option<Instant>,
    patience: &Patience,
) -> Result<Option<QuorumGrant>> {
    let own = Own::new(masters, &request.keys);
    let (mut contested, mut looks) = (false, TRY_LOOKS);
    let mut claimed = claim(masters, request, (turns, votes)).await?;
    loop {
        let (turn, owner, elected) = match std::mem::replace(&mut claimed, Claim::None) {
            Claim::Made { turn, owner, elected } => (turn, owner, Some(elected)),
            Claim::Taken | Claim::None => {
                let asked = masters.now();
                let Some(turn) = take_turn(masters, request, (turns, votes), until, patience).await? else {
                    return Ok(None);
                };
                let now = masters.now();
                lock(&masters.contended).prolong(&request.keys.name, now + now.saturating_duration_since(asked));
                // Not the attempt id of the turn: members of a cohort share a turn, and a master accepts a token once
                // more from its owner.
                let owner =
                    masters.all[0].context().engine.fresh().map_err(|Closed| request.error(ErrorKind::Closed))?;
                (turn, owner, None)
            }
        };
        match vote(masters, request, (turns, votes), (&turn, owner, elected), (patience, &mut contested, &mut looks))
            .await?
        {
            Outcome::Held { votes: slots, until, token, term, late } => {
                let hold = Hold::new(request.keys.clone(), owner, 1, token, request.lease, term, until);
                let rest = Rest::new(masters, Some(turn), Some(own));
                let quorum = QuorumHold::new(masters.clone(), Arc::new(hold), slots, rest);
                QuorumTask::start(quorum.clone(), votes.to_vec(), late);
                let hold = quorum.hold.clone();
                return Ok(Some(QuorumGrant { hold, ends: quorum as Arc<dyn Ends> }));
            }
            Outcome::Busy => return Ok(None),
            Outcome::TurnLost => {}
        }
    }
}

fn check(masters: &Masters, request: &Request) -> Result<()> {
    let invalid = |reason| Err(request.error_because(ErrorKind::InvalidInput, reason));
    let longest = masters.settings.longest_lease;
    if request.lease > longest {
        return invalid(format!("the lease of {:?} is longer than the longest_lease of {longest:?}", request.lease));
    }
    if request.replicas > 0 {
        return invalid("the masters of a RedLock have no replicas to wait for".to_owned());
    }
    Ok(())
}

/// Asks for votes until the turn has won or is lost. The turn is kept while other holds prevent a majority. Once the
/// acquisition was `contested`, it looks at the masters first, and asks for votes when a majority is free. If it comes
/// of a claim, its first round is over, with the outcome `elected`.
async fn vote(
    masters: &Arc<Masters>,
    request: &Request,
    (turns, keys): (&[Arc<Keys>], &[Arc<Keys>]),
    (turn, owner, mut elected): (&HoldOwner, AttemptId, Option<Elected>),
    (patience, contested, looks): (&Patience, &mut bool, &mut u32),
) -> Result<Outcome> {
    // The token of a turn that was handed off is older than this turn: it is counted from when the client learned of
    // it.
    let taken = turn.in_cohort.as_ref().map_or(masters.now(), InCohort::tokens_since);
    let mut pauses = VOTE_AGAIN;
    loop {
        let began = masters.now();
        if masters.is_closed() {
            return Err(request.error(ErrorKind::Closed));
        }
        if turn.hold.loss(began).is_some() {
            return Ok(Outcome::TurnLost);
        }
        let outlook = if *contested { masters.look(keys, request.lease).await } else { Ok(()) };
        let elected = match (elected.take(), outlook) {
            (Some(elected), _) => elected,
            (None, Err(lack)) => Err(lack),
            (None, Ok(())) => {
                let began = masters.now();
                let (lease, term) = (request.lease, request.term(began));
                // The token that the turn would get if it were taken now. Masters that restarted without their counters
                // may have granted newer holds since, and would still accept an older token.
                let token = turn.hold.token().after(began.saturating_duration_since(taken));
                let ballots = masters.ballots(keys, 0..masters.all.len(), lease);
                elect(masters, request, ballots, Proposal { token, owner, granted: false, term, lease }).await?.1
            }
        };
        let pause = match elected {
            Ok(held) => return Ok(held),
            Err(Lack::Contested(left)) => {
                *contested = true;
                masters.change_stats(|stats| stats.contested_rounds += 1);
                // These votes may be those of a claim that was refused, even of this program, and are given back soon.
                // So a try looks again before it gives up.
                if !request.wait {
                    let Some(left) = looks.checked_sub(1) else { return Ok(Outcome::Busy) };
                    *looks = left;
                    pauses = VOTE_AGAIN;
                }
                // A master before the one with the turn answers again, and new acquisitions queue there. In competition
                // with them, this turn would rarely find the votes free.
                if !masters.is_first(turn.context(), turns) {
                    return Ok(Outcome::TurnLost);
                }
                // A majority has answered.
                patience.wait_for_votes(masters.now());
                left.max(HOLD_ENDS)
            }
            Err(Lack::TooFew) => {
                pauses = VOTE;
                masters.change_stats(|stats| stats.failed_rounds += 1);
                masters.check_usable(request, keys, majority(masters.all.len()))?;
                patience.check(masters, request)?;
                Duration::MAX
            }
        };
        // The background cancels the votes during the pause.
        let Pauses { shortest, longest } = std::mem::replace(&mut pauses, VOTE);
        let jittered = shortest + masters.jitter().up_to(longest - shortest);
        masters.executor().sleep(jittered.min(pause)).await;
        patience.ask(masters.now());
    }
}
