//! The members of each cohort: who asks the server, who waits, and what the cohort has in Redis. Pure: a turn is of any
//! type, and the engine gives it a meaning.
//!
//! | member | becomes, on |
//! |---|---|
//! | waiting | asking or holding, when its turn comes |
//! | asking | waiting, once its ticket is queued; holding; gone |
//! | holding | gone; the hold is handed off or ends |
//!
//! A queued ticket belongs to the cohort: the member that has waited longest when the ticket is granted gets it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::task::{Poll, Waker};

use crate::cohort::id::CohortId;
use crate::mutant::{self, Mutant};
use crate::protocol::attempt_id::AttemptId;

/// The cohorts of a client. A cohort exists while it has a member, a hold or a ticket.
#[derive(Debug)]
pub(crate) struct Cohorts<T> {
    cohorts: HashMap<CohortId, Cohort<T>>,
    last_member: u64,
    /// Of members whose turn has come, or that have left. The caller wakes them once the tables are unlocked.
    woken: Vec<Waker>,
}

#[derive(Debug)]
struct Cohort<T> {
    /// By number, hence in order of arrival.
    waiting: BTreeMap<u64, Option<Waker>>,
    /// Turns that have come and that their members have not looked at yet.
    given: HashMap<u64, T>,
    /// Members that ask the server, or are about to.
    asking: HashSet<u64>,
    /// Numbers of the attempt ids that are held.
    holding: HashSet<u64>,
    /// Attempt ids that wait in Redis, never more than there are waiting members.
    tickets: Vec<AttemptId>,
}

impl<T> Cohort<T> {
    fn new() -> Self {
        Self {
            waiting: BTreeMap::new(),
            given: HashMap::new(),
            asking: HashSet::new(),
            holding: HashSet::new(),
            tickets: Vec::new(),
        }
    }

    fn is_empty(&self) -> bool {
        let Self { waiting, given, asking, holding, tickets } = self;
        waiting.is_empty() && given.is_empty() && asking.is_empty() && holding.is_empty() && tickets.is_empty()
    }
}

impl<T> Cohorts<T> {
    pub(crate) fn new() -> Self {
        Self { cohorts: HashMap::new(), last_member: 0, woken: Vec::new() }
    }

    /// Changes a cohort that exists, and appoints a leader afterwards if the cohort needs one. A change of several steps goes
    /// through here as a whole, because no leader is to be appointed in between.
    pub(crate) fn change<R>(&mut self, id: &CohortId, change: impl FnOnce(&mut Change<'_, T>) -> R) -> Option<R> {
        let cohort = self.cohorts.get_mut(id)?;
        let (result, is_empty) = Change { id, cohort, woken: &mut self.woken }.run(change);
        if is_empty {
            self.cohorts.remove(id);
        }
        Some(result)
    }

    /// As [`change`](Self::change), of a cohort that may not exist yet.
    fn change_or_create(&mut self, id: &CohortId, change: impl FnOnce(&mut Change<'_, T>)) {
        let cohort = self.cohorts.entry(id.clone()).or_insert_with(Cohort::new);
        let ((), is_empty) = Change { id, cohort, woken: &mut self.woken }.run(change);
        if is_empty {
            self.cohorts.remove(id);
        }
    }

    /// Adds a member at the end of the cohort. It asks at once if no other member waits and there may be capacity.
    pub(crate) fn join(&mut self, id: &CohortId) -> u64 {
        self.last_member += 1;
        let member = self.last_member;
        self.change_or_create(id, |cohort| cohort.join(member));
        member
    }

    /// The member asks the server.
    pub(crate) fn set_asking(&mut self, id: &CohortId, member: u64) {
        self.change_or_create(id, |cohort| cohort.set_asking(member));
    }

    /// The attempt for which the member asked is held.
    pub(crate) fn set_held(&mut self, id: &CohortId, member: u64, hold: u64) {
        self.change_or_create(id, |cohort| {
            cohort.cohort.asking.remove(&member);
            cohort.cohort.holding.insert(hold);
        });
    }

    /// The attempt for which the member asked is queued. The member waits again, in its former place.
    pub(crate) fn set_queued(&mut self, id: &CohortId, member: u64, ticket: AttemptId) {
        self.change_or_create(id, |cohort| {
            cohort.cohort.asking.remove(&member);
            cohort.cohort.waiting.insert(member, None);
            cohort.cohort.tickets.push(ticket);
        });
    }

    /// No member holds the attempt id any more.
    pub(crate) fn end_hold(&mut self, id: &CohortId, hold: u64) {
        self.change(id, |cohort| cohort.end_hold(hold));
    }

    /// The number of waiting members.
    pub(crate) fn waiting(&self, id: &CohortId) -> usize {
        self.cohorts.get(id).map_or(0, |cohort| cohort.waiting.len())
    }

    /// In all cohorts: the number of waiting members, and of their tickets in Redis.
    pub(crate) fn all_waiting(&self) -> (usize, usize) {
        let cohorts = self.cohorts.values();
        cohorts
            .fold((0, 0), |(waiting, tickets), cohort| (waiting + cohort.waiting.len(), tickets + cohort.tickets.len()))
    }

    /// Ready when the member has its turn, with what it was given. While it waits, `waker` is exchanged for the former one.
    pub(crate) fn poll(&mut self, id: &CohortId, member: u64, waker: &mut Option<Waker>) -> Poll<Option<T>> {
        let Some(cohort) = self.cohorts.get_mut(id) else { return Poll::Ready(None) };
        match cohort.waiting.get_mut(&member) {
            Some(waits) => {
                std::mem::swap(waits, waker);
                Poll::Pending
            }
            None => Poll::Ready(cohort.given.remove(&member)),
        }
    }

    /// Wakes every waiting member: the client is closed.
    pub(crate) fn wake_all(&mut self) {
        let waiting = self.cohorts.values_mut().flat_map(|cohort| cohort.waiting.values_mut());
        self.woken.extend(waiting.filter_map(Option::take));
    }

    /// The wakers of all members that were woken since the last call.
    pub(crate) fn take_woken(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.woken)
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.cohorts.is_empty()
    }
}

/// One cohort while it is changed.
#[derive(Debug)]
pub(crate) struct Change<'a, T> {
    id: &'a CohortId,
    cohort: &'a mut Cohort<T>,
    woken: &'a mut Vec<Waker>,
}

impl<T> Change<'_, T> {
    /// Returns whether the cohort is empty afterwards, too.
    fn run<R>(mut self, change: impl FnOnce(&mut Self) -> R) -> (R, bool) {
        let result = change(&mut self);
        self.appoint_leader();
        (result, self.cohort.is_empty())
    }

    fn join(&mut self, member: u64) {
        let Cohort { waiting, asking, holding, .. } = &mut *self.cohort;
        if waiting.is_empty() && asking.len() + holding.len() < self.id.capacity() {
            asking.insert(member);
        } else {
            waiting.insert(member, None);
        }
    }

    /// Whether more members wait than the cohort has tickets.
    pub(crate) fn needs_turn(&self) -> bool {
        self.cohort.waiting.len() > self.cohort.tickets.len()
    }

    pub(crate) fn is_held(&self, hold: u64) -> bool {
        self.cohort.holding.contains(&hold)
    }

    pub(crate) fn end_hold(&mut self, hold: u64) {
        self.cohort.holding.remove(&hold);
    }

    /// Gives the turn to the member that has waited longest. The turn comes back if every waiting member has a ticket.
    pub(crate) fn give(&mut self, turn: T) -> Result<u64, T> {
        if !self.needs_turn() {
            return Err(turn);
        }
        let Some(member) = self.next() else { return Err(turn) };
        self.cohort.given.insert(member, turn);
        Ok(member)
    }

    /// The member asks the server.
    pub(crate) fn set_asking(&mut self, member: u64) {
        self.cohort.asking.insert(member);
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
        self.woken.extend(self.cohort.waiting.remove(&member).flatten());
        self.cohort.asking.remove(&member);
        self.cohort.given.remove(&member)
    }

    /// If the waiting members have no attempt, ticket or hold to expect a turn from, the oldest one becomes the leader: it asks the
    /// server.
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

#[cfg(test)]
mod tests;
