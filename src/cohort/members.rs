//! One cohort: who asks the server, who waits, and what the cohort has in Redis. Pure: a turn is of any type, and the
//! engine gives it a meaning.
//!
//! | member | becomes, on |
//! |---|---|
//! | waiting | asking or holding, when its turn comes |
//! | asking | waiting, once its ticket is queued; holding; gone |
//! | holding | gone; the hold is handed off or ends |
//!
//! A queued ticket belongs to the cohort: the member that has waited longest when the ticket is granted gets it.

use std::collections::VecDeque;
use std::task::{Poll, Waker};

use rustc_hash::FxHashSet;

use crate::cohort::id::CohortId;
use crate::cohort::waiting::Waiting;
use crate::mutant::{self, Mutant};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::dispatch::Failure;
use crate::wakers::Wakers;

/// The allocations of a cohort with more entries than this are not kept for the next cohort.
const SMALL: usize = 128;

/// Exists while it has a member, a hold or a ticket.
#[derive(Debug)]
pub(super) struct Cohort<T> {
    waiting: Waiting,
    /// Turns that were given to members which have not looked at them yet. Most members look in the order in which they
    /// were given.
    given: VecDeque<(u64, T)>,
    /// Members that ask the server, or are about to.
    asking: FxHashSet<u64>,
    /// The numbers of the attempt ids that are held.
    holding: FxHashSet<u64>,
    /// The attempt ids of the cohort that are queued in Redis. There are never more of them than waiting members.
    tickets: Vec<AttemptId>,
    /// How the last request of a member failed, unless one was answered since. It is the cause in the error of a member
    /// that waits in vain. Boxed, because it is rare.
    failure: Option<Box<Failure>>,
}

impl<T> Cohort<T> {
    pub(super) fn new() -> Self {
        Self {
            waiting: Waiting::default(),
            given: VecDeque::new(),
            asking: FxHashSet::default(),
            holding: FxHashSet::default(),
            tickets: Vec::new(),
            failure: None,
        }
    }

    fn is_empty(&self) -> bool {
        let Self { waiting, given, asking, holding, tickets, failure: _ } = self;
        waiting.is_empty() && given.is_empty() && asking.is_empty() && holding.is_empty() && tickets.is_empty()
    }

    /// Whether the allocations of this cohort are small enough to be kept.
    pub(super) fn is_small(&self) -> bool {
        let Self { waiting, given, asking, holding, tickets, failure: _ } = self;
        let sizes = [waiting.capacity(), given.capacity(), asking.capacity(), holding.capacity(), tickets.capacity()];
        sizes.iter().all(|size| *size <= SMALL)
    }

    /// The same allocations, for another cohort.
    pub(super) fn without_failure(self) -> Self {
        Self { failure: None, ..self }
    }

    /// Whether a new member has to wait.
    pub(super) fn would_wait(&self, id: &CohortId) -> bool {
        !self.waiting.is_empty() || self.asking.len() + self.holding.len() >= id.capacity()
    }

    pub(super) fn one_held(&self) -> Option<u64> {
        self.holding.iter().next().copied()
    }

    pub(super) fn failure(&self) -> Option<&Failure> {
        self.failure.as_deref()
    }

    /// The number of waiting members.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The number of tickets in Redis.
    pub(super) fn tickets(&self) -> usize {
        self.tickets.len()
    }

    /// The tickets in Redis, oldest first.
    pub(super) fn queued(&self) -> &[AttemptId] {
        &self.tickets
    }

    /// The wakers of all waiting members.
    pub(super) fn wakers(&mut self) -> impl Iterator<Item = Waker> {
        self.waiting.wakers()
    }

    /// Resolves to the member's turn. While the member waits, `waker`, if there is one, is swapped with the waker
    /// stored before.
    pub(super) fn poll(&mut self, member: u64, waker: &mut Option<Waker>) -> Poll<Option<T>> {
        let given = self.take_given(member);
        if given.is_none()
            && let Some(waits) = self.waiting.waker(member)
        {
            if waker.is_some() {
                std::mem::swap(waits, waker);
            }
            return Poll::Pending;
        }
        Poll::Ready(given)
    }

    /// Takes the turn that was given to the member.
    fn take_given(&mut self, member: u64) -> Option<T> {
        let at = self.given.iter().position(|(other, _)| *other == member)?;
        self.given.remove(at).map(|(_, turn)| turn)
    }
}

/// A cohort that is being changed.
#[derive(Debug)]
pub(crate) struct Change<'a, T> {
    pub(super) id: &'a CohortId,
    pub(super) cohort: &'a mut Cohort<T>,
    pub(super) woken: &'a mut Wakers,
}

impl<T> Change<'_, T> {
    /// Changes the cohort, and appoints a leader afterwards if the cohort needs one. Returns whether the cohort is
    /// empty then, too.
    pub(super) fn run<R>(mut self, change: impl FnOnce(&mut Self) -> R) -> (R, bool) {
        let result = change(&mut self);
        self.appoint_leader();
        (result, self.cohort.is_empty())
    }

    /// Returns whether the member has to wait.
    pub(super) fn join(&mut self, member: u64, waker: &mut Option<Waker>) -> bool {
        let waits = self.cohort.would_wait(self.id);
        if waits {
            self.cohort.waiting.insert(member, waker.take());
        } else {
            self.cohort.asking.insert(member);
        }
        waits
    }

    /// Whether more members wait than the cohort has tickets.
    pub(crate) fn needs_turn(&self) -> bool {
        self.wait_without_ticket() > 0
    }

    /// How many more members wait than the cohort has tickets.
    pub(crate) fn wait_without_ticket(&self) -> usize {
        self.cohort.waiting.len().saturating_sub(self.cohort.tickets.len())
    }

    /// Whether no member waits, so that there is no ticket either.
    pub(crate) fn none_waits(&self) -> bool {
        self.cohort.waiting.is_empty()
    }

    /// The number of an attempt id that the cohort holds. If it holds several, it can be any of them.
    pub(crate) fn one_held(&self) -> Option<u64> {
        self.cohort.one_held()
    }

    /// The numbers of all attempt ids that the cohort holds.
    pub(crate) fn held(&self) -> impl Iterator<Item = u64> {
        self.cohort.holding.iter().copied()
    }

    pub(crate) fn is_held(&self, hold: u64) -> bool {
        self.cohort.holding.contains(&hold)
    }

    /// No member holds the attempt id any more.
    pub(crate) fn end_hold(&mut self, hold: u64) {
        self.cohort.holding.remove(&hold);
    }

    /// Gives the turn to the member that has waited longest. The turn comes back if every waiting member has a ticket.
    pub(crate) fn give(&mut self, turn: T) -> Result<u64, T> {
        if !self.needs_turn() {
            return Err(turn);
        }
        let Some(member) = self.next() else { return Err(turn) };
        self.cohort.given.push_back((member, turn));
        Ok(member)
    }

    /// The member asks the server.
    pub(crate) fn set_asking(&mut self, member: u64) {
        self.cohort.asking.insert(member);
    }

    /// A request of a member that asks got no usable answer.
    pub(super) fn set_failed(&mut self, failure: &Failure) {
        self.cohort.failure = Some(Box::new(failure.clone()));
    }

    /// The attempt for which the member asked is held.
    pub(super) fn set_held(&mut self, member: u64, hold: u64) {
        self.cohort.asking.remove(&member);
        self.cohort.holding.insert(hold);
        self.cohort.failure = None;
    }

    /// The attempt for which the member asked is queued. The member waits again, in its former place.
    pub(super) fn set_queued(&mut self, member: u64, ticket: AttemptId) {
        self.cohort.asking.remove(&member);
        self.cohort.waiting.insert(member, None);
        self.cohort.tickets.push(ticket);
        self.cohort.failure = None;
    }

    /// The ticket belongs to the cohort.
    pub(crate) fn add_ticket(&mut self, ticket: AttemptId) {
        self.cohort.tickets.push(ticket);
    }

    /// Takes the ticket from the cohort. `false`: it was not there.
    pub(crate) fn take_ticket(&mut self, ticket: AttemptId) -> bool {
        let tickets = &mut self.cohort.tickets;
        let at = tickets.iter().position(|other| *other == ticket);
        at.map(|at| tickets.remove(at)).is_some()
    }

    /// Takes the youngest ticket if there are more tickets than waiting members.
    pub(crate) fn take_surplus_ticket(&mut self) -> Option<AttemptId> {
        let Cohort { tickets, waiting, .. } = &mut *self.cohort;
        if tickets.len() > waiting.len() { tickets.pop() } else { None }
    }

    /// The member leaves. Returns a turn that it was given and has not looked at.
    pub(crate) fn leave(&mut self, member: u64) -> Option<T> {
        self.woken.extend(self.cohort.waiting.remove(member));
        self.cohort.asking.remove(&member);
        self.cohort.take_given(member)
    }

    /// If the waiting members have no attempt, ticket or hold to expect a turn from, the oldest one becomes the leader:
    /// it asks the server.
    fn appoint_leader(&mut self) {
        let mut may_ask = !self.id.is_exclusive() || self.cohort.holding.is_empty();
        if mutant::on(Mutant::OneAsksForPermits) {
            may_ask = self.cohort.holding.is_empty();
        }
        if may_ask && self.cohort.asking.is_empty() && self.cohort.tickets.is_empty() {
            let leader = self.next();
            self.cohort.asking.extend(leader);
        }
    }

    /// Takes the member that has waited longest off the list, and wakes it.
    fn next(&mut self) -> Option<u64> {
        let (member, waker) = self.cohort.waiting.pop_first()?;
        self.woken.extend(waker);
        Some(member)
    }
}
