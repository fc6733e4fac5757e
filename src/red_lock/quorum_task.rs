//! The task of a hold: it counts the renewed votes, and asks for lost votes again. It releases what is lost or dropped.

use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt;
use futures::future::{Either, join, pending, select};
use futures::stream::FuturesUnordered;

use crate::engine::lease::{Loss, Term};
use crate::mutant::{self, Mutant};
use crate::mutex::lock;
use crate::protocol::key::Keys;
use crate::red_lock::ballot::Proposal;
use crate::red_lock::cast::Cast;
use crate::red_lock::late::Late;
use crate::red_lock::leaving::let_go;
use crate::red_lock::quorum_hold::{QuorumHold, Slot};
use crate::red_lock::round::Until;
use crate::runtime::timeout;
use crate::tuning::VOTE_COUNTS;

pub(super) struct QuorumTask {
    quorum: Arc<QuorumHold>,
    /// The keys of the vote on each master.
    keys: Vec<Arc<Keys>>,
}

/// What a hold has to do next.
enum Next {
    /// It must end.
    Ended,
    /// Wait for the next answer, or count.
    Wait,
    CountDue,
}

impl QuorumTask {
    /// Keeps the hold until a method of [`Ends`](crate::hold::quorum::Ends) ends it, or until it is lost.
    /// `late` are the requests that the grant did not wait for.
    pub(super) fn start(quorum: Arc<QuorumHold>, keys: Vec<Arc<Keys>>, late: Option<Late>) {
        if late.is_some() {
            quorum.set_incomplete();
        }
        let executor = quorum.masters.executor().clone();
        let task = Self { quorum, keys };
        executor.spawn(Box::pin(task.run(late)));
    }

    async fn run(self, late: Option<Late>) {
        let late = self.keep(late).await;
        self.quorum.set_complete();
        // Closing clients may have ended the hold since the last count.
        self.quorum.tell_closed();
        let give_back = async {
            if let Some(late) = late {
                late.give_back().await;
            }
        };
        // If a release has taken it, that release ends the hold.
        let rest = self.quorum.take_rest();
        let end = async {
            if let Some(rest) = rest
                && let (_, Some(late)) = let_go(self.quorum.end_with(rest)).await
            {
                late.await;
            }
        };
        join(give_back, end).await;
    }

    /// Returns when the hold must end or is lost, with the requests that have no answer yet.
    async fn keep(&self, mut late: Option<Late>) -> Option<Late> {
        let quorum = &*self.quorum;
        let is_renewed = quorum.hold.term != Term::Fixed;
        loop {
            match self.next(&mut late).await {
                Next::Ended => return late,
                Next::Wait => continue,
                Next::CountDue => {}
            }
            self.count();
            if quorum.hold.deadline().is_none() {
                return late;
            }
            // A vote that was asked for is not asked for again.
            if late.is_some() {
                continue;
            }
            // The requests end at the deadline, because a loss is signalled then.
            let left = quorum.hold.remaining(quorum.masters.now());
            let regained = async { timeout(quorum.masters.executor(), left, self.regain()).await };
            if is_renewed && let Either::Left(_) = select(pin!(quorum.ended()), pin!(regained)).await {
                return None;
            }
        }
    }

    /// Waits for what comes next. A vote that comes joins the hold.
    async fn next(&self, late: &mut Option<Late>) -> Next {
        let answer = async {
            let Some(requests) = &mut *late else { return pending().await };
            match requests.next().await {
                Some(returned) => drop(returned.cast.map(|cast| self.take(cast))),
                None => {
                    *late = None;
                    self.quorum.set_complete();
                }
            }
        };
        match select(pin!(self.quorum.ended()), select(pin!(answer), pin!(self.pause()))).await {
            Either::Left(_) => Next::Ended,
            Either::Right((Either::Left(_), _)) => Next::Wait,
            Either::Right((Either::Right(_), _)) => Next::CountDue,
        }
    }

    /// Waits until the next count is due or a vote is lost.
    async fn pause(&self) {
        let quorum = &*self.quorum;
        let left = quorum.hold.remaining(quorum.masters.now());
        let pause = if quorum.hold.term == Term::Fixed { left } else { left.min(quorum.hold.lease / VOTE_COUNTS) };
        let lost = async {
            // No reference to a vote is kept: a release on another thread would find the vote in use, and leave it.
            let held = |slot: &Slot| slot.vote.as_ref().map(|vote| vote.hold.clone());
            let holds: Vec<_> = lock(&quorum.slots).iter().filter_map(held).collect();
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
        if let Some(loss) = loss {
            quorum.lose(loss);
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
        // A release that has begun meanwhile has taken the votes.
        if missing.is_empty() || hold.deadline().is_none() {
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
        for cast in masters.cast(ballots, proposal, Until::All).await.casts {
            if self.take(cast) {
                masters.change_stats(|stats| stats.votes_regained += 1);
            }
        }
    }

    /// Adds a vote that was given after the grant. `false`: it is none, or the hold is over.
    fn take(&self, cast: Cast) -> bool {
        let QuorumHold { masters, hold, .. } = &*self.quorum;
        let master = cast.ballot.master;
        // A client that has just connected may lead to a server that has voted already. The drop cancels the second
        // vote.
        if masters.check_distinct("renew").is_err() {
            return false;
        }
        // Without a vote, the next count asks for it again.
        let Some(slot) = cast.hold(masters, hold.token(), hold.term) else { return false };
        self.quorum.regain(master, slot).is_ok()
    }
}

impl Drop for QuorumTask {
    fn drop(&mut self) {
        self.quorum.set_complete();
        self.quorum.tell_closed();
        // If nobody has taken it, the hold was neither released nor lost: the runtime has dropped the task.
        if let Some(rest) = self.quorum.take_rest() {
            self.quorum.hold.set_lost(Loss::Closed);
            self.quorum.hold.notify_over();
            drop(rest);
        }
    }
}

#[cfg(test)]
pub(in crate::red_lock) mod tests;
