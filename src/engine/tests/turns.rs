//! Turns in a cohort: given, taken, or handed on.

use super::*;
use crate::engine::turn::{CannotJoin, Closed, Reach, SharedFailure};
use crate::error::{Error, ErrorKind};
use crate::protocol::message::Message;
use crate::wakers::woken::Woken;

const SEMAPHORE: Kind = Kind::Semaphore { limit: 2 };

struct Cohort {
    setup: Setup,
    keys: Arc<Keys>,
    id: CohortId,
}

fn cohort(kind: Kind) -> Cohort {
    let keys = Arc::new(Keys::new("p", kind, "a").unwrap());
    Cohort { setup: setup(), id: CohortId::of(&keys, 1), keys }
}

impl Cohort {
    fn join(&self) -> u64 {
        self.setup.engine.join_asleep(&self.id, 0).ok().unwrap()
    }

    fn open(&self, member: u64) -> AttemptHandoff {
        self.setup.engine.open_in_cohort(&self.keys, member, (1, false), LEASE, self.setup.now).unwrap()
    }

    /// Records that the ticket belongs to the cohort from now on.
    fn queue(&self, id: AttemptId) {
        let queued = Queued { sent: self.setup.now, asked: 1, holder_left: Some(LEASE), call_again: false };
        assert!(self.setup.engine.queued(id, queued, self.setup.now));
    }

    fn poll(&self, member: u64) -> Poll<Result<Result<Turn, SharedFailure>, Closed>> {
        let context = Context::from_waker(std::task::Waker::noop());
        self.setup.engine.poll_turn(&self.id, member, self.setup.now, &context).map_ok(|(given, _)| given)
    }

    #[track_caller]
    fn attempt(&self, member: u64) -> AttemptHandoff {
        match self.poll(member) {
            Poll::Ready(Ok(Ok(Turn::Attempt(handoff)))) => handoff,
            turn => panic!("{turn:?}"),
        }
    }

    fn drop_pending(&self, id: AttemptId) {
        self.setup.engine.drop_pending(id, None, self.setup.now);
    }

    fn leave(&self, member: u64) {
        self.setup.engine.leave(&self.id, member, self.setup.now);
    }

    /// Removes the members, and checks that nothing is left of the cohort.
    fn leave_all(&self, members: &[u64]) {
        members.iter().for_each(|member| self.leave(*member));
        self.setup.assert_empty();
    }
}

/// It is not polled again before its turn.
#[test]
fn a_member_that_joins_and_waits_is_woken_by_its_turn() {
    let cohort = cohort(Kind::Lock);
    let woken = Arc::<Woken>::default();
    let leader = cohort.join();
    let waits = cohort.setup.engine.join(&cohort.id, 0, Some(&woken.waker()), cohort.setup.now).ok().unwrap();
    assert!(waits.waits && woken.count() == 0);
    cohort.leave(leader);
    assert_eq!(woken.count(), 1);
    cohort.leave_all(&[waits.number]);
}

#[test]
fn a_full_cohort_takes_no_member_unless_there_is_no_limit() {
    let cohort = cohort(Kind::Lock);
    let members = [cohort.join(), cohort.join(), cohort.join()];
    let joined = |max_waiters| cohort.setup.engine.join_asleep(&cohort.id, max_waiters);
    assert!(matches!(joined(1), Err(CannotJoin::Full)));
    assert!(matches!(joined(2), Err(CannotJoin::Full)));
    let more = [joined(3).ok().unwrap(), joined(0).ok().unwrap()];
    cohort.leave_all(&[&members[..], &more].concat());
}

#[test]
fn tokens_are_reserved_for_members_that_wait() {
    for (kind, expected) in [(Kind::Lock, HANDOFF_BUDGET), (SEMAPHORE, 1), (Kind::ReadWrite, 1)] {
        let cohort = cohort(kind);
        let first = cohort.join();
        let alone = cohort.open(first);
        assert_eq!(alone.amount, 1, "{kind:?}");
        cohort.drop_pending(alone.id);
        let others: Vec<_> = (0..3).map(|_| cohort.join()).collect();
        let handoff = cohort.open(first);
        assert_eq!(handoff.amount, expected, "{kind:?}");
        cohort.setup.engine.forget(handoff.id);
        cohort.leave(first);
        cohort.leave_all(&others);
    }
}

#[test]
fn the_next_member_continues_a_request_that_is_dropped() {
    let cohort = cohort(Kind::Lock);
    let [first, second] = [cohort.join(), cohort.join()];
    let handoff = cohort.open(first);
    cohort.drop_pending(handoff.id);
    cohort.leave(first);
    let next = cohort.attempt(second);
    assert_eq!((next.id, next.amount, next.asked, next.is_decided), (handoff.id, handoff.amount, 1, false));
    assert!(cohort.setup.engine.work(cohort.setup.now).cleanups.is_empty());
    // No other member is left.
    cohort.drop_pending(next.id);
    assert_eq!(cohort.setup.engine.work(cohort.setup.now).cleanups.len(), 1);
    cohort.leave(second);
}

#[test]
fn the_outcome_of_a_ticket_is_for_the_member_that_has_waited_longest() {
    let cohort = cohort(Kind::Lock);
    let [first, second] = [cohort.join(), cohort.join()];
    let handoff = cohort.open(first);
    cohort.queue(handoff.id);
    cohort.leave(first);
    assert!(cohort.poll(second).is_pending());
    cohort.setup.engine.deliver(Message::Granted { id: handoff.id, token: Token::new(1), at: 1 }, cohort.setup.now);
    let next = cohort.attempt(second);
    assert_eq!((next.id, next.is_decided), (handoff.id, true));
    cohort.setup.engine.forget(next.id);
    cohort.leave_all(&[second]);
}

#[test]
fn a_turn_of_a_member_that_left_goes_to_the_next() {
    let cohort = cohort(Kind::Lock);
    let [first, second, third] = [cohort.join(), cohort.join(), cohort.join()];
    let handoff = cohort.open(first);
    cohort.drop_pending(handoff.id);
    cohort.leave(first);
    cohort.leave(second);
    assert_eq!(cohort.attempt(third).id, handoff.id);
    cohort.setup.engine.forget(handoff.id);
    cohort.leave_all(&[third]);
}

#[test]
fn a_ticket_that_no_member_waits_for_is_given_up() {
    let cohort = cohort(Kind::Lock);
    let first = cohort.join();
    let handoff = cohort.open(first);
    cohort.queue(handoff.id);
    cohort.leave(first);
    let work = cohort.setup.engine.work(cohort.setup.now);
    assert_eq!(work.cleanups.len(), 1);
    cohort.setup.answer(&work);
    cohort.setup.assert_empty();
}

#[test]
fn a_failure_is_for_the_next_member_too() {
    let cohort = cohort(Kind::Lock);
    let [first, second] = [cohort.join(), cohort.join()];
    let now = cohort.setup.now;
    let failure = SharedFailure { error: Error::new(ErrorKind::Unavailable, "lock"), reach: Reach::JoinedBy(now) };
    cohort.setup.engine.fail(&cohort.id, first, failure, now);
    match cohort.poll(second) {
        Poll::Ready(Ok(Err(SharedFailure { error, reach: Reach::JoinedBy(since) }))) => {
            assert_eq!((error.kind(), since), (ErrorKind::Unavailable, now));
        }
        turn => panic!("{turn:?}"),
    }
    cohort.leave_all(&[second]);
}

/// Several members may hold permits: each asks as soon as the one before has its answer.
#[test]
fn a_permit_that_is_held_lets_the_next_member_ask() {
    let cohort = cohort(SEMAPHORE);
    let members: Vec<_> = (0..3).map(|_| cohort.join()).collect();
    let handoffs: Vec<_> = members[..2].iter().map(|member| cohort.open(*member)).collect();
    assert!(cohort.poll(members[2]).is_pending());
    let hold = |handoff: &AttemptHandoff| {
        let until = cohort.setup.now + LEASE;
        cohort.setup.engine.hold(handoff.id, 1, Token::NONE, Term::Renewed, until, cohort.setup.now).unwrap()
    };
    let holds: Vec<_> = handoffs.iter().map(hold).collect();
    assert!(matches!(cohort.poll(members[2]), Poll::Ready(Ok(Ok(Turn::Lead { .. })))));
    for (hold, member) in holds.iter().zip(&members) {
        cohort.setup.engine.release(hold, cohort.setup.now);
        cohort.leave(*member);
    }
    cohort.leave_all(&members[2..]);
}

#[test]
fn a_lost_hold_lets_the_next_member_ask() {
    let cohort = cohort(Kind::Lock);
    let [first, second] = [cohort.join(), cohort.join()];
    let handoff = cohort.open(first);
    let (now, until) = (cohort.setup.now, cohort.setup.now + LEASE);
    let hold = cohort.setup.engine.hold(handoff.id, 1, Token::new(1), Term::Renewed, until, now).unwrap();
    assert!(cohort.poll(second).is_pending());
    cohort.setup.engine.renewed(now, now, &[], &[hold]);
    assert!(matches!(cohort.poll(second), Poll::Ready(Ok(Ok(Turn::Lead { .. })))));
    cohort.leave_all(&[first, second]);
}
