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

use std::collections::VecDeque;
use std::task::{Poll, Waker};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::cohort::id::CohortId;
use crate::cohort::waiting::Waiting;
use crate::mutant::{self, Mutant};
use crate::protocol::attempt_id::AttemptId;
use crate::wakers::Wakers;

/// The allocations of a cohort with more entries than this are not kept for the next cohort.
const SMALL: usize = 128;

/// The cohorts of a client. A cohort exists while it has a member, a hold or a ticket.
#[derive(Debug)]
pub(crate) struct Cohorts<T> {
    cohorts: FxHashMap<CohortId, Cohort<T>>,
    /// The last cohort that became empty. The next cohort uses its allocations.
    spare: Option<Cohort<T>>,
    last_member: u64,
    /// The wakers of members whose turn has come, or that have left. The caller wakes them after the tables are unlocked.
    woken: Wakers,
}

#[derive(Debug)]
struct Cohort<T> {
    waiting: Waiting,
    /// Turns that were given to members which have not looked at them yet. Most members look in the order in which they were given.
    given: VecDeque<(u64, T)>,
    /// Members that ask the server, or are about to.
    asking: FxHashSet<u64>,
    /// The numbers of the attempt ids that are held.
    holding: FxHashSet<u64>,
    /// The attempt ids of the cohort that are queued in Redis. There are never more of them than waiting members.
    tickets: Vec<AttemptId>,
}

impl<T> Cohort<T> {
    fn new() -> Self {
        Self {
            waiting: Waiting::default(),
            given: VecDeque::new(),
            asking: FxHashSet::default(),
            holding: FxHashSet::default(),
            tickets: Vec::new(),
        }
    }

    fn is_empty(&self) -> bool {
        let Self { waiting, given, asking, holding, tickets } = self;
        waiting.is_empty() && given.is_empty() && asking.is_empty() && holding.is_empty() && tickets.is_empty()
    }
}

impl<T> Cohort<T> {
    /// Takes the turn that was given to the member.
    fn take_given(&mut self, member: u64) -> Option<T> {
        let at = self.given.iter().position(|(other, _)| *other == member)?;
        self.given.remove(at).map(|(_, turn)| turn)
    }

    /// Whether the allocations of this cohort are small enough to be kept.
    fn is_small(&self) -> bool {
        let Self { waiting, given, asking, holding, tickets } = self;
        let sizes = [waiting.capacity(), given.capacity(), asking.capacity(), holding.capacity(), tickets.capacity()];
        sizes.iter().all(|size| *size <= SMALL)
    }
}

impl<T> Cohorts<T> {
    pub(crate) fn new() -> Self {
        Self { cohorts: FxHashMap::default(), spare: None, last_member: 0, woken: Wakers::default() }
    }

    /// Changes a cohort that exists, and appoints a leader afterwards if the cohort needs one. A change of several steps goes
    /// through here as a whole, because no leader is to be appointed in between.
    pub(crate) fn change<R>(&mut self, id: &CohortId, change: impl FnOnce(&mut Change<'_, T>) -> R) -> Option<R> {
        let cohort = self.cohorts.get_mut(id)?;
        let (result, is_empty) = Change { id, cohort, woken: &mut self.woken }.run(change);
        if is_empty {
            self.spare = self.cohorts.remove(id).filter(Cohort::is_small);
        }
        Some(result)
    }

    /// Like [`change`](Self::change), but creates the cohort if it does not exist. The change must add something to it.
    fn change_or_create<R>(&mut self, id: &CohortId, change: impl FnOnce(&mut Change<'_, T>) -> R) -> R {
        let cohort = match self.cohorts.get_mut(id) {
            Some(cohort) => cohort,
            None => {
                let cohort = self.spare.take().unwrap_or_else(Cohort::new);
                self.cohorts.entry(id.clone()).or_insert(cohort)
            }
        };
        Change { id, cohort, woken: &mut self.woken }.run(change).0
    }

    /// Adds a member at the end of the cohort. It asks at once if no other member waits and there may be capacity. If it has to
    /// wait, the cohort takes the waker.
    pub(crate) fn join(&mut self, id: &CohortId, waker: &mut Option<Waker>) -> Joined {
        self.last_member += 1;
        let number = self.last_member;
        let waits = self.change_or_create(id, |cohort| cohort.join(number, waker));
        Joined { number, waits }
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

    /// The number of the last member that has joined, in any cohort.
    pub(crate) fn last_member(&self) -> u64 {
        self.last_member
    }

    /// The number of waiting members.
    pub(crate) fn waiting(&self, id: &CohortId) -> usize {
        self.cohorts.get(id).map_or(0, |cohort| cohort.waiting.len())
    }

    /// The number of waiting members of all cohorts, and the number of tickets that they have in Redis.
    pub(crate) fn all_waiting(&self) -> (usize, usize) {
        let cohorts = self.cohorts.values();
        cohorts
            .fold((0, 0), |(waiting, tickets), cohort| (waiting + cohort.waiting.len(), tickets + cohort.tickets.len()))
    }

    /// Resolves to the member's turn. While the member waits, `waker`, if there is one, is swapped with the waker stored before.
    pub(crate) fn poll(&mut self, id: &CohortId, member: u64, waker: &mut Option<Waker>) -> Poll<Option<T>> {
        let Some(cohort) = self.cohorts.get_mut(id) else { return Poll::Ready(None) };
        let given = cohort.take_given(member);
        if given.is_none()
            && let Some(waits) = cohort.waiting.waker(member)
        {
            if waker.is_some() {
                std::mem::swap(waits, waker);
            }
            return Poll::Pending;
        }
        Poll::Ready(given)
    }

    /// Wakes every waiting member: the client is closed.
    pub(crate) fn wake_all(&mut self) {
        self.woken.extend(self.cohorts.values_mut().flat_map(|cohort| cohort.waiting.wakers()));
    }

    /// The wakers of all members that are woken. The caller takes them.
    pub(crate) fn woken(&mut self) -> &mut Wakers {
        &mut self.woken
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.cohorts.is_empty()
    }
}

/// A new member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joined {
    pub(crate) number: u64,
    /// Whether its turn is still to come.
    pub(crate) waits: bool,
}

/// A cohort that is being changed.
#[derive(Debug)]
pub(crate) struct Change<'a, T> {
    id: &'a CohortId,
    cohort: &'a mut Cohort<T>,
    woken: &'a mut Wakers,
}

impl<T> Change<'_, T> {
    /// Returns whether the cohort is empty afterwards, too.
    fn run<R>(mut self, change: impl FnOnce(&mut Self) -> R) -> (R, bool) {
        let result = change(&mut self);
        self.appoint_leader();
        (result, self.cohort.is_empty())
    }

    /// Returns whether the member has to wait.
    fn join(&mut self, member: u64, waker: &mut Option<Waker>) -> bool {
        let Cohort { waiting, asking, holding, .. } = &mut *self.cohort;
        let waits = !waiting.is_empty() || asking.len() + holding.len() >= self.id.capacity();
        if waits {
            waiting.insert(member, waker.take());
        } else {
            asking.insert(member);
        }
        waits
    }

    /// Whether more members wait than the cohort has tickets.
    pub(crate) fn needs_turn(&self) -> bool {
        self.cohort.waiting.len() > self.cohort.tickets.len()
    }

    /// The number of an attempt id that the cohort holds. If it holds several, it can be any of them.
    pub(crate) fn one_held(&self) -> Option<u64> {
        self.cohort.holding.iter().next().copied()
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
