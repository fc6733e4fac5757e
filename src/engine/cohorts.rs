//! Who stands in which cohort, who of them asks the server, and what they have there. Pure: what a turn means is the
//! engine's business.
//!
//! | place | becomes, on |
//! |---|---|
//! | waits | asks or holds, with its turn |
//! | asks | waits, once its ticket is queued; holds; gone |
//! | holds | gone, and the hold is passed on, or not |
//!
//! A queued ticket is the cohort's, for whoever is first when it is granted.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::task::{Poll, Waker};

use crate::protocol::attempt_id::AttemptId;
use crate::protocol::key::Keys;
use crate::protocol::kind::Kind;

/// What a cohort is for: whoever stands there can do with what the others have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CohortId {
    keys: Arc<Keys>,
    units: u32,
}

impl CohortId {
    /// `amount` is the last part of a ticket: a span, of a lock. Of a read-write lock, writers stand in a cohort, who take
    /// all of it.
    pub(crate) fn of(keys: &Arc<Keys>, amount: u32) -> Self {
        let units = if let Kind::Semaphore { .. } = keys.kind { amount } else { 1 };
        Self { keys: keys.clone(), units }
    }

    /// How many may hold at a time, as the call sites know; an operator may have set another limit.
    fn room(&self) -> usize {
        let units =
            if let Kind::Semaphore { limit } = self.keys.kind { limit.checked_div(self.units) } else { Some(1) };
        usize::try_from(units.unwrap_or(0)).unwrap_or(usize::MAX)
    }

    /// Whether nothing can be free as long as somebody holds.
    fn is_exclusive(&self) -> bool {
        !matches!(self.keys.kind, Kind::Semaphore { .. })
    }
}

/// The cohorts of a client. A cohort is there as long as there is something of it.
#[derive(Debug)]
pub(crate) struct Cohorts<T> {
    cohorts: HashMap<CohortId, Cohort<T>>,
    last_member: u64,
}

#[derive(Debug)]
struct Cohort<T> {
    /// By place, so in order of arrival.
    waiting: BTreeMap<u64, Option<Waker>>,
    /// What those have not looked at whose turn has come.
    given: HashMap<u64, T>,
    /// Places that ask the server, or are to.
    asking: HashSet<u64>,
    /// Numbers of attempt ids that are held.
    holding: HashSet<u64>,
    /// Attempt ids that wait at the server for whoever is first by then, never more than wait here.
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

    /// The turn of whoever has waited for longest.
    fn next(&mut self, wakers: &mut Vec<Waker>) -> Option<u64> {
        let (member, waker) = self.waiting.pop_first()?;
        wakers.extend(waker);
        Some(member)
    }
}

impl<T> Cohorts<T> {
    pub(crate) fn new() -> Self {
        Self { cohorts: HashMap::new(), last_member: 0 }
    }

    fn cohort(&mut self, id: &CohortId) -> &mut Cohort<T> {
        self.cohorts.entry(id.clone()).or_insert_with(Cohort::new)
    }

    /// A member at the end of the cohort. If nobody waits there and it may find room, it asks at once, whoever else asks.
    pub(crate) fn join(&mut self, id: &CohortId) -> u64 {
        self.last_member += 1;
        let member = self.last_member;
        let cohort = self.cohort(id);
        if cohort.waiting.is_empty() && cohort.asking.len() + cohort.holding.len() < id.room() {
            cohort.asking.insert(member);
        } else {
            cohort.waiting.insert(member, None);
        }
        member
    }

    /// How many wait in the cohort.
    pub(crate) fn waiting(&self, id: &CohortId) -> usize {
        self.cohorts.get(id).map_or(0, |cohort| cohort.waiting.len())
    }

    /// In all cohorts: how many wait, and how many tickets they have at the server.
    pub(crate) fn all_waiting(&self) -> (usize, usize) {
        let cohorts = self.cohorts.values();
        cohorts
            .fold((0, 0), |(waiting, tickets), cohort| (waiting + cohort.waiting.len(), tickets + cohort.tickets.len()))
    }

    /// Whether anybody waits for whom there is no ticket.
    pub(crate) fn is_short(&self, id: &CohortId) -> bool {
        self.cohorts.get(id).is_some_and(|cohort| cohort.waiting.len() > cohort.tickets.len())
    }

    /// Waits for its turn, and what was given with it. If it waits, `waker` becomes the one before.
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

    /// The first of those who wait has its turn, with this. It comes back if there are no more of them than tickets.
    pub(crate) fn give(&mut self, id: &CohortId, turn: T, wakers: &mut Vec<Waker>) -> Result<u64, T> {
        let short = self.is_short(id);
        let Some(cohort) = self.cohorts.get_mut(id).filter(|_| short) else { return Err(turn) };
        let Some(member) = cohort.next(wakers) else { return Err(turn) };
        cohort.given.insert(member, turn);
        Ok(member)
    }

    pub(crate) fn asks(&mut self, id: &CohortId, member: u64) {
        self.cohort(id).asking.insert(member);
    }

    /// What the member has asked for is held.
    pub(crate) fn holds(&mut self, id: &CohortId, member: u64, hold: u64) {
        let cohort = self.cohort(id);
        cohort.asking.remove(&member);
        cohort.holding.insert(hold);
    }

    pub(crate) fn is_held(&self, id: &CohortId, hold: u64) -> bool {
        self.cohorts.get(id).is_some_and(|cohort| cohort.holding.contains(&hold))
    }

    /// It is not held any more, by nobody in the cohort.
    pub(crate) fn ends(&mut self, id: &CohortId, hold: u64) {
        if let Some(cohort) = self.cohorts.get_mut(id) {
            cohort.holding.remove(&hold);
        }
    }

    /// What the member has asked for is queued, and it waits again, where it was.
    pub(crate) fn queues(&mut self, id: &CohortId, member: u64, ticket: AttemptId) {
        let cohort = self.cohort(id);
        cohort.asking.remove(&member);
        cohort.waiting.insert(member, None);
        cohort.tickets.push(ticket);
    }

    /// The ticket is the cohort's no more. `false`: it was not.
    pub(crate) fn takes(&mut self, id: &CohortId, ticket: AttemptId) -> bool {
        let Some(cohort) = self.cohorts.get_mut(id) else { return false };
        let at = cohort.tickets.iter().position(|other| *other == ticket);
        at.map(|at| cohort.tickets.remove(at)).is_some()
    }

    /// A ticket that nobody waits for any more, the youngest.
    pub(crate) fn surplus(&mut self, id: &CohortId) -> Option<AttemptId> {
        let cohort = self.cohorts.get_mut(id)?;
        if cohort.tickets.len() > cohort.waiting.len() { cohort.tickets.pop() } else { None }
    }

    /// Whoever has the member goes. Comes back: what it was given and has not looked at.
    pub(crate) fn leave(&mut self, id: &CohortId, member: u64, wakers: &mut Vec<Waker>) -> Option<T> {
        let cohort = self.cohorts.get_mut(id)?;
        wakers.extend(cohort.waiting.remove(&member).flatten());
        cohort.asking.remove(&member);
        cohort.given.remove(&member)
    }

    /// Nobody waits for what will not come: if nothing is under way at the server, the first of those who wait is to ask.
    pub(crate) fn settle(&mut self, id: &CohortId, wakers: &mut Vec<Waker>) {
        let Some(cohort) = self.cohorts.get_mut(id) else { return };
        let kept = id.is_exclusive() && !cohort.holding.is_empty();
        if !kept && cohort.asking.is_empty() && cohort.tickets.is_empty() {
            let leader = cohort.next(wakers);
            cohort.asking.extend(leader);
        }
        if cohort.is_empty() {
            self.cohorts.remove(id);
        }
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.cohorts.is_empty()
    }

    /// Those of all who wait.
    pub(crate) fn wakers(&mut self) -> impl Iterator<Item = Waker> {
        self.cohorts.values_mut().flat_map(|cohort| cohort.waiting.values_mut()).filter_map(Option::take)
    }
}

#[cfg(test)]
mod tests;
