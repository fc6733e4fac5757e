//! A hold of a RedLock, as its guards and its task share it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use event_listener::Event;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};

use crate::engine::lease::{Hold, Loss, Whole};
use crate::error::{Error, ErrorKind, Result};
use crate::hold::extend::extend_alone;
use crate::hold::owner::{HoldOwner, check_not_lost, lost_error};
use crate::hold::quorum::Ends;
use crate::mutex::lock;
use crate::red_lock::count::{Validity, deadline, has_come, majority};
use crate::red_lock::leaving::{End, Leaving, Rest};
use crate::red_lock::masters::Masters;
use crate::red_lock::together::together;
use crate::runtime::timeout;
use crate::until::until;

/// The vote of one master.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) vote: Option<Arc<HoldOwner>>,
    /// The time from which the vote counts. `None`: at once.
    from: Option<Instant>,
}

impl Slot {
    pub(super) fn voted(vote: HoldOwner, from: Option<Instant>) -> Self {
        Self { vote: Some(Arc::new(vote)), from }
    }

    /// Whether the time has come from which the vote counts.
    fn counts(&self, now: Instant) -> bool {
        has_come(self.from, now)
    }

    /// The time in which the vote counts. `None` if it is lost.
    pub(super) fn validity(&self) -> Option<Validity> {
        let until = self.vote.as_ref()?.hold.deadline()?;
        Some(Validity { until, from: self.from })
    }
}

pub(super) struct QuorumHold {
    pub(super) masters: Arc<Masters>,
    pub(super) hold: Arc<Hold>,
    /// The votes, by master.
    pub(super) slots: Mutex<Vec<Slot>>,
    /// Set when closing clients have ended the hold, and cleared when its waiters are woken.
    closed: AtomicBool,
    is_ending: AtomicBool,
    /// Whether votes may still come that the grant did not wait for.
    awaits_votes: AtomicBool,
    /// Notified when none is to come any more.
    has_all: Event,
    /// Notified when the hold must end.
    end: Event,
    /// `None` once the hold is being ended, by its task or by the caller's release.
    rest: Mutex<Option<Rest>>,
}

impl QuorumHold {
    pub(super) fn new(masters: Arc<Masters>, hold: Arc<Hold>, slots: Vec<Slot>, rest: Rest) -> Arc<Self> {
        let [closed, is_ending, awaits_votes] = [false; 3].map(AtomicBool::new);
        let (rest, votes) =
            (Mutex::new(Some(rest)), slots.iter().filter_map(|slot| slot.vote.clone()).collect::<Vec<_>>());
        let quorum = Arc::new(Self {
            masters,
            hold,
            slots: Mutex::new(slots),
            closed,
            is_ending,
            awaits_votes,
            has_all: Event::new(),
            end: Event::new(),
            rest,
        });
        votes.iter().for_each(|vote| quorum.has_part(&vote.hold));
        quorum
    }

    /// Makes the vote a part of the hold. A client that closes ends the hold before it gives the vote back.
    fn has_part(self: &Arc<Self>, vote: &Hold) {
        let whole: Weak<Self> = Arc::downgrade(self);
        vote.set_part_of(whole);
    }

    /// Stores a vote that a master has given after the grant. `Err` with the vote: the hold is over.
    pub(super) fn regain(self: &Arc<Self>, master: usize, slot: Slot) -> std::result::Result<(), Slot> {
        let vote = slot.vote.as_ref().map(|vote| vote.hold.clone());
        {
            let mut slots = lock(&self.slots);
            // A release ends the hold before it takes the votes, and would miss one that comes later.
            if self.hold.deadline().is_none() {
                return Err(slot);
            }
            slots[master] = slot;
        }
        vote.iter().for_each(|vote| self.has_part(vote));
        Ok(())
    }

    /// Votes may come that the grant did not wait for, until [`set_complete`](Self::set_complete).
    pub(super) fn set_incomplete(&self) {
        self.awaits_votes.store(true, Ordering::SeqCst);
    }

    /// No vote is to come any more that the grant did not wait for.
    pub(super) fn set_complete(&self) {
        if self.awaits_votes.swap(false, Ordering::SeqCst) {
            self.has_all.notify(usize::MAX);
        }
    }

    /// Marks the hold as lost, counts the loss and wakes the waiters.
    pub(super) fn lose(&self, loss: Loss) {
        if self.hold.set_lost(loss) {
            self.tell_lost(loss);
        } else {
            self.tell_closed();
        }
    }

    /// Counts a loss that closing clients have marked, and wakes the waiters. Does nothing the second time.
    pub(super) fn tell_closed(&self) {
        if self.closed.swap(false, Ordering::SeqCst) {
            self.tell_lost(Loss::Closed);
        }
    }

    fn tell_lost(&self, loss: Loss) {
        self.masters.count_loss(&self.hold, loss);
        self.hold.notify_over();
    }

    /// Ends the hold. If it is lost, and its task has not noticed that yet, the loss is counted.
    fn end_hold(&self) -> Result<(), Loss> {
        let now = self.masters.now();
        if let Some(loss) = self.hold.loss(now) {
            self.lose(loss);
        }
        self.hold.release(now)
    }

    /// Takes out what the hold has besides its votes. `None`: the hold is being ended already.
    pub(super) fn take_rest(&self) -> Option<Rest> {
        lock(&self.rest).take()
    }

    /// Takes the votes out, to end the hold.
    pub(super) fn end_with(&self, rest: Rest) -> End {
        let votes = lock(&self.slots).iter_mut().map(|slot| slot.vote.take()).collect();
        End { masters: self.masters.clone(), hold: self.hold.clone(), votes, rest }
    }

    /// The time until which a majority of votes lasts. `None`: there is no majority.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        let slots = lock(&self.slots);
        deadline(slots.len(), slots.iter().filter_map(Slot::validity), now)
    }

    /// The votes with their masters: those that an extension needs, and those that do not count yet or are of masters
    /// that are down, which it needs only if the others are no majority.
    fn needed_and_spare(&self, now: Instant) -> [Vec<(usize, Arc<HoldOwner>)>; 2] {
        let all = &self.masters.all;
        let slots = lock(&self.slots);
        let votes = slots.iter().enumerate().filter_map(|(n, slot)| Some((n, slot.vote.clone()?)));
        let (counted, mut others): (Vec<_>, Vec<_>) =
            votes.partition(|(n, _)| all[*n].is_up() && slots[*n].counts(now));
        if counted.len() >= majority(all.len()) {
            return [counted, others];
        }
        others.extend(counted);
        [others, Vec::new()]
    }

    /// Resolves when the hold must end.
    pub(super) async fn ended(&self) {
        until(&self.end, || self.is_ending().then_some(())).await;
    }

    pub(super) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::SeqCst)
    }

    fn set_ending(&self) {
        self.is_ending.store(true, Ordering::SeqCst);
        self.end.notify(usize::MAX);
    }

    fn error(&self, kind: ErrorKind, operation: &'static str) -> Error {
        Error::new(kind, operation).with_name(&self.hold.keys.name)
    }
}

impl Whole for QuorumHold {
    fn part_closed(&self) {
        if self.deadline(self.masters.now()).is_none() && self.hold.set_lost(Loss::Closed) {
            self.closed.store(true, Ordering::SeqCst);
        }
    }
}

impl Ends for QuorumHold {
    fn release(self: Arc<Self>) -> BoxFuture<'static, Result<()>> {
        // Taken before the hold is released. The task of the hold would take it as soon as it sees that the hold is
        // over.
        let rest = self.take_rest();
        let lost = self.end_hold().err();
        self.tell_closed();
        self.set_ending();
        let leaving = rest.map(|rest| Leaving::begin(self.end_with(rest)));
        match (lost, leaving) {
            // `leaving` is dropped here, and therefore goes on in a task.
            (Some(loss), _) => ready(Err(lost_error(&self.hold, "release", loss))).boxed(),
            // The caller itself releases. If a task did, it would have to be woken, and would have to wake the caller.
            (None, Some(leaving)) => leaving.boxed(),
            // The runtime has dropped the task of the hold.
            (None, None) => ready(Err(self.error(ErrorKind::Closed, "release"))).boxed(),
        }
    }

    fn release_later(&self) {
        let _ = self.end_hold();
        self.set_ending();
    }

    fn extend(&self, lease: Duration) -> BoxFuture<'_, Result<()>> {
        const OPERATION: &str = "extend";
        Box::pin(async move {
            let masters = &self.masters;
            check_not_lost(&self.hold, OPERATION, masters.now())?;
            if lease > masters.settings.longest_lease {
                let reason =
                    format!("the lease is longer than the longest_lease of {:?}", masters.settings.longest_lease);
                return Err(self.error(ErrorKind::InvalidInput, OPERATION).with_reason(reason));
            }
            // A vote that comes later would not be extended.
            until(&self.has_all, || (!self.awaits_votes.load(Ordering::SeqCst)).then_some(())).await;
            let (sent, limit) = (masters.now(), masters.node_timeout(lease));
            let [needed, spare] = self.needed_and_spare(sent);
            for (_, vote) in spare {
                // Without the owner of the vote, which a release meanwhile must have for itself.
                let (executor, context, hold) = (masters.executor().clone(), vote.context().clone(), vote.hold.clone());
                let extended =
                    async move { drop(timeout(&executor, limit, extend_alone(&context, &hold, lease)).await) };
                masters.executor().spawn(Box::pin(extended));
            }
            let extended = needed.iter().map(|(_, vote)| extend_alone(vote.context(), &vote.hold, lease));
            let extended = together(masters.executor(), limit, extended).await;
            for ((n, vote), _) in needed.iter().zip(&extended).filter(|(_, answer)| answer.is_none()) {
                masters.set_silent(*n, &vote.hold.keys, None, (sent, limit));
            }
            let now = masters.now();
            if let Some(until) = self.deadline(now) {
                self.hold.extend(until, now);
            }
            check_not_lost(&self.hold, OPERATION, now)?;
            let prolonged = needed.iter().zip(&extended).filter(|(_, extended)| matches!(extended, Some(Ok(()))));
            if prolonged.filter(|((n, _), _)| lock(&self.slots)[*n].counts(now)).count() >= majority(masters.all.len())
            {
                return Ok(());
            }
            Err(self.error(ErrorKind::Unavailable, OPERATION).with_reason("too few masters have prolonged the lease"))
        })
    }
}

impl fmt::Debug for QuorumHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuorumHold").field("name", &self.hold.keys.name).finish_non_exhaustive()
    }
}
