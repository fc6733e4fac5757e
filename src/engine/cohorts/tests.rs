use uuid::Uuid;

use super::*;

struct Setup {
    cohorts: Cohorts<&'static str>,
    id: CohortId,
}

fn setup(kind: Kind) -> Setup {
    let keys = Arc::new(Keys::new("p", kind, "n").unwrap());
    Setup { cohorts: Cohorts::new(), id: CohortId::of(&keys, 1) }
}

const NOTHING: Poll<Option<&str>> = Poll::Ready(None);

impl Setup {
    /// As the engine does.
    fn join(&mut self) -> u64 {
        let member = self.cohorts.join(&self.id);
        self.settle();
        member
    }

    fn settle(&mut self) {
        self.cohorts.settle(&self.id, &mut Vec::new());
    }

    fn poll(&mut self, member: u64) -> Poll<Option<&'static str>> {
        self.cohorts.poll(&self.id, member, &mut Some(Waker::noop().clone()))
    }

    /// What comes back, and how many were woken.
    fn give(&mut self, turn: &'static str) -> (Result<u64, &'static str>, usize) {
        let mut wakers = Vec::new();
        (self.cohorts.give(&self.id, turn, &mut wakers), wakers.len())
    }

    fn leave(&mut self, member: u64) -> (Option<&'static str>, usize) {
        let mut wakers = Vec::new();
        let given = self.cohorts.leave(&self.id, member, &mut wakers);
        self.settle();
        (given, wakers.len())
    }

    fn holds(&mut self, member: u64, hold: u64) {
        self.cohorts.holds(&self.id, member, hold);
        self.settle();
    }

    fn ends(&mut self, hold: u64) {
        self.cohorts.ends(&self.id, hold);
        self.settle();
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
    cohort.holds(members[0], 1);
    assert_eq!((cohort.poll(members[1]), cohort.poll(members[2])), (Poll::Pending, Poll::Pending));
    assert_eq!(cohort.give("one"), (Ok(members[1]), 1));
    assert_eq!((cohort.poll(members[1]), cohort.poll(members[2])), (Poll::Ready(Some("one")), Poll::Pending));
    assert_eq!(cohort.give("two"), (Ok(members[2]), 1));
    assert_eq!(cohort.poll(members[2]), Poll::Ready(Some("two")));
    assert_eq!(cohort.give("three"), (Err("three"), 0));
    cohort.ends(1);
    assert!(cohort.cohorts.cohorts.is_empty());
}

#[test]
fn whoever_leaves_is_passed_over_and_what_it_was_given_comes_back() {
    let mut cohort = setup(Kind::Lock);
    let members = [cohort.join(), cohort.join(), cohort.join(), cohort.join()];
    cohort.holds(members[0], 1);
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
        cohort.holds(members[0], 1);
        assert_eq!(cohort.poll(members[1]), Poll::Pending);
        // Lost, or changed.
        cohort.ends(1);
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
    cohort.holds(members[0], 1);
    assert_eq!(cohort.poll(members[2]), Poll::Pending);
    cohort.holds(members[1], 2);
    // An operator may have set a larger limit.
    assert_eq!((cohort.poll(members[2]), cohort.poll(members[3])), (NOTHING, Poll::Pending));
    cohort.holds(members[2], 3);
    assert_eq!(cohort.poll(members[3]), NOTHING);
}

#[test]
fn a_ticket_is_for_whoever_is_first() {
    let mut cohort = setup(Kind::Semaphore { limit: 1 });
    let members = [cohort.join(), cohort.join(), cohort.join()];
    cohort.holds(members[0], 1);
    cohort.cohorts.queues(&cohort.id, members[1], ticket(2));
    assert_eq!((cohort.poll(members[1]), cohort.poll(members[2])), (Poll::Pending, Poll::Pending));
    assert!(cohort.cohorts.is_short(&cohort.id));
    // What the first is done with does not wait for the ticket.
    assert_eq!(cohort.give("held"), (Ok(members[1]), 1));
    assert!(!cohort.cohorts.is_short(&cohort.id));
    assert_eq!(cohort.give("another"), (Err("another"), 0));
    assert!(cohort.cohorts.takes(&cohort.id, ticket(2)) && !cohort.cohorts.takes(&cohort.id, ticket(2)));
    assert_eq!(cohort.give("granted"), (Ok(members[2]), 1));
}

#[test]
fn a_ticket_that_nobody_waits_for_is_given_up() {
    let mut cohort = setup(Kind::Semaphore { limit: 2 });
    let members = [cohort.join(), cohort.join()];
    for (member, n) in members.into_iter().zip([1, 2]) {
        cohort.cohorts.queues(&cohort.id, member, ticket(n));
    }
    assert_eq!(cohort.cohorts.surplus(&cohort.id), None);
    cohort.leave(members[0]);
    assert_eq!(cohort.cohorts.surplus(&cohort.id), Some(ticket(2)));
    assert_eq!(cohort.cohorts.surplus(&cohort.id), None);
    cohort.leave(members[1]);
    assert_eq!(cohort.cohorts.surplus(&cohort.id), Some(ticket(1)));
    cohort.settle();
    assert!(cohort.cohorts.cohorts.is_empty());
}
