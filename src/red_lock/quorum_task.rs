//! The task of a hold: it counts the renewed votes, asks for lost votes again, and releases the votes at the end.

use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt;
use futures::future::{Either, pending, select};
use futures::stream::FuturesUnordered;

use crate::engine::lease::{Loss, Term};
use crate::error::{Error, ErrorKind, Result};
use crate::hold::guard::{Share, release, release_with};
use crate::hold::owner::release::With;
use crate::hold::owner::{HoldOwner, check_not_lost, lost_error};
use crate::mutant::{self, Mutant};
use crate::mutex::lock;
use crate::observe;
use crate::protocol::key::Keys;
use crate::red_lock::count::majority;
use crate::red_lock::own::Own;
use crate::red_lock::quorum_hold::QuorumHold;
use crate::red_lock::round::{Cast, Proposal};
use crate::red_lock::together::{Together, together};
use crate::runtime::timeout;
use crate::tuning::VOTE_COUNTS;

pub(super) struct QuorumTask {
    quorum: Arc<QuorumHold>,
    /// The keys of the vote on each master.
    keys: Vec<Arc<Keys>>,
    /// Released after the votes, because its release lets the next acquisition ask for them.
    turn: Option<Arc<HoldOwner>>,
    /// `None` once the hold has ended.
    own: Option<Own>,
}

impl QuorumTask {
    /// Keeps the hold until a method of [`Ends`](crate::hold::quorum::Ends) ends it, or until it is lost.
    pub(super) fn start(quorum: Arc<QuorumHold>, keys: Vec<Arc<Keys>>, turn: Arc<HoldOwner>, own: Own) {
        let executor = quorum.masters.executor().clone();
        let task = Self { quorum, keys, turn: Some(turn), own: Some(own) };
        executor.spawn(Box::pin(task.run()));
    }

    async fn run(mut self) {
        self.keep().await;
        self.let_go().await;
    }

    /// Returns when the hold must end or is lost.
    async fn keep(&self) {
        let quorum = &*self.quorum;
        let is_renewed = quorum.hold.term != Term::Fixed;
        loop {
            if let Either::Left(_) = select(pin!(quorum.ended()), pin!(self.pause())).await {
                return;
            }
            self.count();
            if quorum.hold.deadline().is_none() {
                return;
            }
            // The requests end at the deadline, because a loss is signalled then.
            let left = quorum.hold.remaining(quorum.masters.now());
            let regained = async { timeout(quorum.masters.executor(), left, self.regain()).await };
            if is_renewed && let Either::Left(_) = select(pin!(quorum.ended()), pin!(regained)).await {
                return;
            }
        }
    }

    /// Waits until the next count is due or a vote is lost.
    async fn pause(&self) {
        let quorum = &*self.quorum;
        let left = quorum.hold.remaining(quorum.masters.now());
        let pause = if quorum.hold.term == Term::Fixed { left } else { left.min(quorum.hold.lease / VOTE_COUNTS) };
        let lost = async {
            let votes: Vec<_> = lock(&quorum.slots).iter().filter_map(|slot| slot.vote.clone()).collect();
            let holds = votes.iter().map(|vote| vote.hold.clone()).collect::<Vec<_>>();
            drop(votes);
            let mut over: FuturesUnordered<_> = holds.iter().map(|hold| hold.over()).collect();
            if over.next().await.is_none() {
                pending::<()>().await;
            }
        };
        select(quorum.masters.executor().sleep(pause), pin!(lost)).await;
    }

    /// Moves the deadline of the hold to the time until which a majority of the votes lasts, and drops lost votes. The
    /// hold is lost at its deadline, or when the clients are closed. No other holder can have a majority before these
    /// leases have ended.
    fn count(&self) {
        let quorum = &*self.quorum;
        let now = quorum.masters.now();
        if let Some(until) = quorum.deadline(now) {
            quorum.hold.extend(until, now);
        }
        let mut gone = Vec::new();
        let mut closed = 0;
        for slot in &mut *lock(&quorum.slots) {
            if let Some(vote) = slot.vote.take_if(|vote| vote.hold.deadline().is_none()) {
                closed += usize::from(vote.hold.loss(now) == Some(Loss::Closed));
                gone.push(vote);
            }
        }
        // Dropped after the mutex is unlocked, because this may be the last reference to a hold, whose drop locks other
        // tables.
        drop(gone);
        let loss = match quorum.hold.loss(now) {
            None if closed > 0 && quorum.deadline(now).is_none() => Some(Loss::Closed),
            loss => loss,
        };
        if let Some(loss) = loss
            && quorum.hold.lose(loss)
        {
            quorum.masters.change_stats(|stats| stats.lost += 1);
            observe::lost(&quorum.hold.keys.name, &loss, loss.word());
        }
    }

    /// Asks masters for the votes that the hold has lost or never had, with the hold's own token.
    ///
    /// A master may have accepted a larger token meanwhile, from an acquisition that has found no majority. It votes
    /// for the hold all the same, and its counter stays as it is: while a majority has this hold, no later hold has
    /// been granted that the counter could stand for.
    async fn regain(&self) {
        let QuorumHold { masters, hold, slots, .. } = &*self.quorum;
        let missing: Vec<usize> = {
            let slots = lock(slots);
            slots.iter().enumerate().filter(|(_, slot)| slot.vote.is_none()).map(|(n, _)| n).collect()
        };
        if missing.is_empty() {
            return;
        }
        let mut token = hold.token();
        if mutant::on(Mutant::VoteRegainedWithFreshToken) {
            token = token.next();
        }
        // If no majority has the hold any more, as after a jump of clocks, later holds may have been granted.
        let mut granted = self.quorum.deadline(masters.now()).is_some();
        if mutant::on(Mutant::RegainedVoteBarred) {
            granted = false;
        }
        let proposal = Proposal { token, owner: hold.id, granted, term: hold.term, lease: hold.lease };
        let ballots = masters.ballots(&self.keys, missing.into_iter(), hold.lease);
        for cast in masters.cast(ballots, proposal).await.casts {
            self.set_regained(cast);
        }
    }

    fn set_regained(&self, cast: Cast<'_>) {
        let QuorumHold { masters, hold, slots, .. } = &*self.quorum;
        let master = cast.ballot.master;
        // A client that has just connected may lead to a server that has voted already. The drop cancels the second
        // vote.
        if masters.check_distinct("renew").is_err() {
            return;
        }
        // Without a vote, the next count asks for it again.
        if let Some(slot) = cast.hold(masters, hold.token(), hold.term) {
            masters.change_stats(|stats| stats.votes_regained += 1);
            lock(slots)[master] = slot;
        }
    }

    /// Releases all votes at once, and with the vote of its master the turn, if nobody waits for it. Otherwise the turn
    /// is released next, which hands over to the next acquisition. Then answers the caller. A release without an answer
    /// within the node timeout continues in the background.
    async fn let_go(&mut self) {
        let quorum = self.quorum.clone();
        let masters = &quorum.masters;
        let votes: Vec<_> = lock(&quorum.slots).iter_mut().map(|slot| slot.vote.take()).enumerate().collect();
        let votes = votes.into_iter().filter_map(|(n, vote)| vote.filter(|_| masters.all[n].is_up()));
        if mutant::on(Mutant::TurnBeforeVotes) {
            self.turn = None;
            masters.executor().sleep(masters.node_timeout(quorum.hold.lease) / 4).await;
        }
        let limit = masters.node_timeout(quorum.hold.lease);
        let votes: Vec<_> = votes.collect();
        let mut with_vote = self.turn_with_vote(&votes);
        // From the request on, the engine does not count the turn among its holds. If the runtime ends half-way, the
        // good-bye releases it all the same. Declared before the turn, and therefore dropped after it.
        let leaving = with_vote.as_ref().map(|turn| (turn.context().clone(), turn.hold.clone()));
        let _ending = leaving.as_ref().map(|(context, hold)| context.engine.ending(hold, context.now()));
        let mut turn = self.turn.take();
        let mut awaits_turn = with_vote.is_some();
        let releases = votes.into_iter().map(|vote| {
            let with = with_vote.take_if(|turn| Arc::ptr_eq(turn.context(), vote.context()));
            async move {
                let had_turn = with.is_some();
                let mut with = with.map_or(With::Nothing, With::Turn);
                let released = release_with(vote, &mut with).await;
                (released, had_turn, if let With::Turn(left) = with { Some(left) } else { None })
            }
        });
        let mut releases = Together::new(masters.executor().sleep(limit), releases);
        let mut count = Released::default();
        // The next acquisition only needs a majority.
        while (count.ended < majority(masters.all.len()) || awaits_turn)
            && let Some((released, had_turn, left)) = releases.next().await
        {
            count.add(&released);
            awaits_turn &= !had_turn;
            turn = turn.or(left.map(|left| Arc::new(*left)));
        }
        if let Some(turn) = turn.take_if(|turn| masters.answers_to(turn.context())) {
            together(masters.executor(), limit, [release(Share::new(turn))]).await;
        }
        drop(turn);
        // The caller may acquire again at once.
        self.own = None;
        quorum.tell(self.outcome(count));
        while releases.next().await.is_some() {}
    }

    /// Takes the turn out, if it can be released together with one of these votes. A cohort hands it off instead.
    fn turn_with_vote(&mut self, votes: &[Arc<HoldOwner>]) -> Option<Box<HoldOwner>> {
        let is_with = |turn: &HoldOwner| votes.iter().any(|vote| Arc::ptr_eq(vote.context(), turn.context()));
        let turn = self.turn.take_if(|turn| turn.in_cohort.is_none() && is_with(turn))?;
        // No one else has a reference to a turn that is in no cohort.
        Arc::into_inner(turn).map(Box::new)
    }

    /// What the caller of the release is told.
    fn outcome(&self, count: Released) -> Result<()> {
        let QuorumHold { masters, hold, .. } = &*self.quorum;
        let needed = majority(masters.all.len());
        check_not_lost(hold, "release", masters.now())?;
        if count.ended < needed {
            let reason = "too few masters have confirmed the release; it continues in the background";
            return Err(Error::because(ErrorKind::Unavailable, "release", reason).with_name(&hold.keys.name));
        }
        // So many votes were gone that the hold had no majority.
        if masters.all.len() - count.gone < needed {
            return Err(lost_error(hold, "release", Loss::Gone));
        }
        Ok(())
    }
}

/// The number of votes that were released.
#[derive(Clone, Copy, Default)]
struct Released {
    ended: usize,
    /// The number of these votes that the master no longer had.
    gone: usize,
}

impl Released {
    fn add(&mut self, released: &Result<()>) {
        let gone = matches!(released, Err(error) if error.kind() == ErrorKind::Lost);
        self.gone += usize::from(gone);
        self.ended += usize::from(gone || released.is_ok());
    }
}

impl Drop for QuorumTask {
    fn drop(&mut self) {
        // Does nothing after a release or a loss. In all other cases, the runtime has dropped the task.
        self.quorum.hold.lose(Loss::Closed);
        // The end of its channel tells the caller of the release.
        self.quorum.leave_caller();
        self.quorum.masters.change_stats(|stats| stats.held -= 1);
    }
}

#[cfg(test)]
mod tests;
