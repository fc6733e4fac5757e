//! The cohorts of a client. A cohort is created when something is added to it, and removed when nothing is left of it.

use std::task::{Poll, Waker};

use rustc_hash::FxHashMap;

use crate::cohort::id::CohortId;
use crate::cohort::members::{Change, Cohort};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::dispatch::Failure;
use crate::wakers::Wakers;

/// The cohorts of a client.
#[derive(Debug)]
pub(crate) struct Cohorts<T> {
    cohorts: FxHashMap<CohortId, Cohort<T>>,
    /// The last cohort that became empty. The next cohort uses its allocations.
    spare: Option<Cohort<T>>,
    last_member: u64,
    /// The wakers of members whose turn has come, or that have left. The caller wakes them after the tables are
    /// unlocked.
    woken: Wakers,
}

impl<T> Cohorts<T> {
    pub(crate) fn new() -> Self {
        Self { cohorts: FxHashMap::default(), spare: None, last_member: 0, woken: Wakers::default() }
    }

    /// Changes a cohort that exists, and appoints a leader afterwards if the cohort needs one. A change of several
    /// steps goes through here as a whole, because no leader is to be appointed in between.
    pub(crate) fn change<R>(&mut self, id: &CohortId, change: impl FnOnce(&mut Change<'_, T>) -> R) -> Option<R> {
        let cohort = self.cohorts.get_mut(id)?;
        let (result, is_empty) = Change { id, cohort, woken: &mut self.woken }.run(change);
        if is_empty {
            self.spare = self.cohorts.remove(id).filter(Cohort::is_small).map(Cohort::without_failure);
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

    /// Adds a member at the end of the cohort. It asks at once if no other member waits and there may be capacity. If
    /// it has to wait, the cohort takes the waker.
    pub(crate) fn join(&mut self, id: &CohortId, waker: &mut Option<Waker>) -> Joined {
        self.last_member += 1;
        let number = self.last_member;
        let waits = self.change_or_create(id, |cohort| cohort.join(number, waker));
        Joined { number, waits }
    }

    /// Whether a member that joins has to wait.
    pub(crate) fn would_wait(&self, id: &CohortId) -> bool {
        self.cohorts.get(id).is_some_and(|cohort| cohort.would_wait(id))
    }

    /// The number of an attempt id that the cohort holds. If it holds several, it can be any of them.
    pub(crate) fn one_held(&self, id: &CohortId) -> Option<u64> {
        self.cohorts.get(id)?.one_held()
    }

    /// The member asks the server.
    pub(crate) fn set_asking(&mut self, id: &CohortId, member: u64) {
        self.change_or_create(id, |cohort| cohort.set_asking(member));
    }

    /// The attempt for which the member asked is held.
    pub(crate) fn set_held(&mut self, id: &CohortId, member: u64, hold: u64) {
        self.change_or_create(id, |cohort| cohort.set_held(member, hold));
    }

    /// The attempt for which the member asked is queued. The member waits again, in its former place.
    pub(crate) fn set_queued(&mut self, id: &CohortId, member: u64, ticket: AttemptId) {
        self.change_or_create(id, |cohort| cohort.set_queued(member, ticket));
    }

    /// A request of a member that asks got no usable answer.
    pub(crate) fn set_failed(&mut self, id: &CohortId, failure: &Failure) {
        self.change(id, |cohort| cohort.set_failed(failure));
    }

    /// How the last request of a member failed. `None`: it was answered.
    pub(crate) fn why_failed(&self, id: &CohortId) -> Option<&Failure> {
        self.cohorts.get(id)?.failure()
    }

    /// The number of the last member that has joined, in any cohort.
    pub(crate) fn last_member(&self) -> u64 {
        self.last_member
    }

    /// The tickets of the cohort in Redis, oldest first.
    pub(crate) fn queued(&self, id: &CohortId) -> &[AttemptId] {
        self.cohorts.get(id).map_or(&[], Cohort::queued)
    }

    /// The number of waiting members.
    pub(crate) fn waiting(&self, id: &CohortId) -> usize {
        self.cohorts.get(id).map_or(0, Cohort::waiting)
    }

    /// The number of waiting members of all cohorts, and the number of tickets that they have in Redis.
    pub(crate) fn all_waiting(&self) -> (usize, usize) {
        let cohorts = self.cohorts.values();
        cohorts.fold((0, 0), |(waiting, tickets), cohort| (waiting + cohort.waiting(), tickets + cohort.tickets()))
    }

    /// Resolves to the member's turn. While the member waits, `waker`, if there is one, is swapped with the waker
    /// stored before.
    pub(crate) fn poll(&mut self, id: &CohortId, member: u64, waker: &mut Option<Waker>) -> Poll<Option<T>> {
        self.cohorts.get_mut(id).map_or(Poll::Ready(None), |cohort| cohort.poll(member, waker))
    }

    /// Wakes every waiting member: the client is closed.
    pub(crate) fn wake_all(&mut self) {
        self.woken.extend(self.cohorts.values_mut().flat_map(Cohort::wakers));
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

#[cfg(test)]
mod tests;
