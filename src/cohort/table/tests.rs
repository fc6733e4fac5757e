use std::sync::Arc;

use uuid::Uuid;

use super::*;
use crate::connection::ConnectionError;
use crate::protocol::key::Keys;
use crate::protocol::kind::Kind;
use crate::protocol::limits::WRITE;

struct Setup {
    cohorts: Cohorts<&'static str>,
    id: CohortId,
}

/// Writers of a read-write lock form the cohort.
fn setup(kind: Kind) -> Setup {
    let keys = Arc::new(Keys::new("p", kind, "n").unwrap());
    let amount = if kind == Kind::ReadWrite { WRITE } else { 1 };
    Setup { cohorts: Cohorts::new(), id: CohortId::of(&keys, amount) }
}

const NOTHING: Poll<Option<&str>> = Poll::Ready(None);

impl Setup {
    fn join(&mut self) -> u64 {
        self.cohorts.join(&self.id, &mut None).number
    }

    fn change<R>(&mut self, change: impl FnOnce(&mut Change<'_, &'static str>) -> R) -> R {
        self.cohorts.change(&self.id, change).unwrap()
    }

    fn poll(&mut self, member: u64) -> Poll<Option<&'static str>> {
        self.cohorts.poll(&self.id, member, &mut Some(Waker::noop().clone()))
    }

    /// Gives a turn. Returns the turn if it comes back, and how many tasks were woken.
    fn give(&mut self, turn: &'static str) -> (Result<u64, &'static str>, usize) {
        let given = self.cohorts.change(&self.id, |cohort| cohort.give(turn)).unwrap_or(Err(turn));
        (given, std::mem::take(self.cohorts.woken()).len())
    }

    fn leave(&mut self, member: u64) -> (Option<&'static str>, usize) {
        let given = self.change(|cohort| cohort.leave(member));
        (given, std::mem::take(self.cohorts.woken()).len())
    }

    fn set_held(&mut self, member: u64, hold: u64) {
        self.cohorts.set_held(&self.id, member, hold);
    }

    fn end_hold(&mut self, hold: u64) {
        self.change(|cohort| cohort.end_hold(hold));
    }

    fn surplus(&mut self) -> Option<AttemptId> {
        self.change(|cohort| cohort.take_surplus_ticket())
    }
}

fn ticket(n: u64) -> AttemptId {
    AttemptId { client: Uuid::nil(), n }
}

#[test]
fn turns_go_in_order_of_arrival() {
    let mut cohort = setup(Kind::Lock);
    let members = [cohort.join(), cohort.join(), cohort.join()];
    assert_eq!(cohort.poll(members[0]), NOTHING);
    cohort.set_held(members[0], 1);
    assert_eq!((cohort.poll(members[1]), cohort.poll(members[2])), (Poll::Pending, Poll::Pending));
    assert_eq!(cohort.give("one"), (Ok(members[1]), 1));
    assert_eq!((cohort.poll(members[1]), cohort.poll(members[2])), (Poll::Ready(Some("one")), Poll::Pending));
    assert_eq!(cohort.give("two"), (Ok(members[2]), 1));
    assert_eq!(cohort.poll(members[2]), Poll::Ready(Some("two")));
    assert_eq!(cohort.give("three"), (Err("three"), 0));
    cohort.end_hold(1);
    assert!(cohort.cohorts.cohorts.is_empty());
}

#[test]
fn a_member_that_leaves_is_passed_over_and_its_turn_comes_back() {
    let mut cohort = setup(Kind::Lock);
    let members = [cohort.join(), cohort.join(), cohort.join(), cohort.join()];
    cohort.set_held(members[0], 1);
    assert_eq!(cohort.poll(members[2]), Poll::Pending);
    assert_eq!(cohort.leave(members[2]), (None, 1));
    assert_eq!(cohort.give("one"), (Ok(members[1]), 0));
    assert_eq!(cohort.leave(members[1]), (Some("one"), 0));
    assert_eq!(cohort.give("one"), (Ok(members[3]), 0));
    assert_eq!(cohort.poll(members[3]), Poll::Ready(Some("one")));
}

#[test]
fn one_asks_at_a_time_for_what_is_one() {
    for kind in [Kind::Lock, Kind::ReadWrite] {
        let mut cohort = setup(kind);
        let members = [cohort.join(), cohort.join(), cohort.join()];
        assert_eq!((cohort.poll(members[0]), cohort.poll(members[1])), (NOTHING, Poll::Pending));
        cohort.set_held(members[0], 1);
        assert_eq!(cohort.poll(members[1]), Poll::Pending);
        // The hold was lost or changed.
        cohort.end_hold(1);
        assert_eq!((cohort.poll(members[1]), cohort.poll(members[2])), (NOTHING, Poll::Pending));
        cohort.leave(members[1]);
        assert_eq!(cohort.poll(members[2]), NOTHING);
    }
}

#[test]
fn as_many_ask_at_once_as_there_may_be_permits_and_one_when_they_are_held() {
    let mut cohort = setup(Kind::Semaphore { limit: 2 });
    let members = [cohort.join(), cohort.join(), cohort.join(), cohort.join()];
    assert_eq!(members.map(|member| cohort.poll(member).is_ready()), [true, true, false, false]);
    cohort.set_held(members[0], 1);
    assert_eq!(cohort.poll(members[2]), Poll::Pending);
    cohort.set_held(members[1], 2);
    // An operator may have set a larger limit.
    assert_eq!((cohort.poll(members[2]), cohort.poll(members[3])), (NOTHING, Poll::Pending));
    cohort.set_held(members[2], 3);
    assert_eq!(cohort.poll(members[3]), NOTHING);
}

#[test]
fn a_ticket_is_for_the_member_that_has_waited_longest() {
    let mut cohort = setup(Kind::Semaphore { limit: 1 });
    let members = [cohort.join(), cohort.join(), cohort.join()];
    cohort.set_held(members[0], 1);
    cohort.cohorts.set_queued(&cohort.id, members[1], ticket(2));
    assert_eq!((cohort.poll(members[1]), cohort.poll(members[2])), (Poll::Pending, Poll::Pending));
    assert!(cohort.change(|cohort| cohort.needs_turn()));
    // A hold that the first member is done with goes to the next one before the ticket is decided.
    assert_eq!(cohort.give("held"), (Ok(members[1]), 1));
    assert!(!cohort.change(|cohort| cohort.needs_turn()));
    assert_eq!(cohort.give("another"), (Err("another"), 0));
    let granted =
        cohort.change(|cohort| (cohort.take_ticket(ticket(2)), cohort.take_ticket(ticket(2)), cohort.give("granted")));
    assert_eq!(granted, (true, false, Ok(members[2])));
}

#[test]
fn a_ticket_too_many_is_taken_back() {
    let mut cohort = setup(Kind::Semaphore { limit: 2 });
    let members = [cohort.join(), cohort.join()];
    for (member, n) in members.into_iter().zip([1, 2]) {
        cohort.cohorts.set_queued(&cohort.id, member, ticket(n));
    }
    assert_eq!(cohort.surplus(), None);
    cohort.leave(members[0]);
    assert_eq!(cohort.surplus(), Some(ticket(2)));
    assert_eq!(cohort.surplus(), None);
    cohort.leave(members[1]);
    assert_eq!(cohort.surplus(), Some(ticket(1)));
    assert!(cohort.cohorts.cohorts.is_empty());
}

#[test]
fn members_that_ask_and_members_that_hold_take_up_capacity() {
    let mut cohort = setup(Kind::Semaphore { limit: 2 });
    let first = cohort.join();
    cohort.set_held(first, 1);
    let second = cohort.join();
    assert_eq!(cohort.poll(second), NOTHING);
    let third = cohort.join();
    assert_eq!(cohort.poll(third), Poll::Pending);
    assert_eq!(cohort.cohorts.waiting(&cohort.id), 1);
    let fourth = cohort.join();
    assert_eq!((cohort.poll(fourth), cohort.cohorts.waiting(&cohort.id)), (Poll::Pending, 2));
    cohort.leave(third);
    cohort.leave(fourth);
    assert_eq!(cohort.cohorts.waiting(&cohort.id), 0);
}

#[test]
fn a_member_with_a_turn_to_ask_keeps_others_from_asking() {
    let mut cohort = setup(Kind::Lock);
    let members = [cohort.join(), cohort.join(), cohort.join()];
    cohort.set_held(members[0], 1);
    assert_eq!(cohort.give("continue"), (Ok(members[1]), 0));
    cohort.cohorts.set_asking(&cohort.id, members[1]);
    cohort.end_hold(1);
    assert_eq!(cohort.poll(members[1]), Poll::Ready(Some("continue")));
    assert_eq!(cohort.poll(members[2]), Poll::Pending);
    cohort.leave(members[1]);
    assert_eq!(cohort.poll(members[2]), NOTHING);
}

#[test]
fn a_hold_is_in_its_cohort_until_it_ends() {
    let mut cohort = setup(Kind::Lock);
    let (first, _second) = (cohort.join(), cohort.join());
    cohort.set_held(first, 1);
    assert_eq!(cohort.change(|cohort| (cohort.is_held(1), cohort.is_held(2))), (true, false));
    cohort.end_hold(1);
    assert!(!cohort.change(|cohort| cohort.is_held(1)));
}

/// The next cohort uses the allocations of the last one, and nothing else of it.
#[test]
fn a_failure_is_that_of_the_cohort_until_a_request_is_answered() {
    let mut setup = setup(Kind::Lock);
    let failure = Failure::from(ConnectionError::refused("LOADING for a while"));
    let [leader, other] = [(); 2].map(|()| setup.join());
    assert_eq!(setup.cohorts.why_failed(&setup.id), None);
    setup.cohorts.set_failed(&setup.id, &failure);
    assert_eq!(setup.cohorts.why_failed(&setup.id), Some(&failure));
    setup.set_held(leader, 1);
    assert_eq!(setup.cohorts.why_failed(&setup.id), None);
    setup.cohorts.set_failed(&setup.id, &failure);
    setup.cohorts.set_queued(&setup.id, other, AttemptId { client: Uuid::nil(), n: 2 });
    assert_eq!(setup.cohorts.why_failed(&setup.id), None);

    setup.cohorts.set_failed(&setup.id, &failure);
    setup.end_hold(1);
    setup.leave(other);
    assert!(setup.surplus().is_some() && setup.cohorts.is_empty());
    setup.join();
    assert_eq!(setup.cohorts.why_failed(&setup.id), None);
}
