//! Attempts and acquisitions of a client whose server is played by the test.

use std::pin::pin;
use std::sync::Arc;
use std::task::{self, Poll, Waker};
use std::time::Duration;

use uuid::Uuid;

use super::*;
use crate::acquire::enter::acquire;
use crate::cohort::id::CohortId;
use crate::context::tests::{Answer, LEASE, Setup, finish, poll, setup};
use crate::engine::lease::Term;
use crate::engine::turn::{AttemptHandoff, SharedFailure};
use crate::holder::Holder;
use crate::mutex::lock;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::message::Message;
use crate::protocol::token::Token;

mod cohort;
mod confirm;
mod retained;

impl Setup {
    fn cohort(&self) -> CohortId {
        CohortId::of(&self.keys, 1)
    }

    fn join(&self) -> u64 {
        self.context.engine.join(&self.cohort(), 0, Some(Waker::noop()), self.context.now()).ok().unwrap().number
    }

    /// Opens an attempt of the first member. Returns it with the member that waits behind it.
    fn open(&self) -> (AttemptHandoff, u64) {
        let [first, second] = [self.join(), self.join()];
        (self.context.engine.open_in_cohort(&self.keys, first, (1, false), LEASE, self.context.now()).unwrap(), second)
    }

    fn turn(&self, member: u64) -> Poll<std::result::Result<Turn, SharedFailure>> {
        let task = task::Context::from_waker(Waker::noop());
        self.context.engine.poll_turn(&self.cohort(), member, self.context.now(), &task).map(|turn| turn.unwrap().0)
    }

    fn cleanups(&self) -> usize {
        self.context.engine.work(self.context.now()).cleanups.len()
    }

    fn source(&self) -> Arc<HoldSource> {
        HoldSource::new(self.context.clone())
    }

    fn request(&self, timeout: Option<Duration>) -> Request {
        let plain = Request::plain("lock", self.keys.clone(), 1, LEASE);
        Request { timeout, fair: false, joins_cohort: true, ..plain }
    }

    async fn acquire(&self, request: Request) -> Result<Option<Arc<HoldOwner>>> {
        acquire(&self.source(), &request).await
    }

    fn answer(&self, answers: impl IntoIterator<Item = Answer>) {
        lock(&self.connection.answers).extend(answers);
    }

    fn calls(&self) -> usize {
        *lock(&self.connection.calls)
    }
}

#[test]
fn an_attempt_without_effect_leaves_nothing_to_clean_up() {
    let setup = setup();
    PendingAttempt::open(&*setup.context, &setup.keys, 1, LEASE).unwrap().forget();
    assert_eq!(setup.cleanups(), 0);
    PendingAttempt::open(&*setup.context, &setup.keys, 1, LEASE).unwrap().abandon();
    assert_eq!(setup.cleanups(), 1);
}

#[test]
fn a_dropped_attempt_goes_to_the_next_member_unless_it_is_alone_or_decided() {
    type End = fn(PendingAttempt<&Context>);
    let ends: [(End, bool); 5] = [
        (|attempt| drop(attempt), true),
        (|mut attempt| attempt.alone = true, false),
        (|mut attempt| attempt.abandon(), false),
        (|mut attempt| attempt.forget(), false),
        (|mut attempt| attempt.leave_to_cohort(), false),
    ];
    for (n, (end, handed_on)) in ends.into_iter().enumerate() {
        let setup = setup();
        let (handoff, second) = setup.open();
        let id = handoff.id;
        end(PendingAttempt::resume(&*setup.context, handoff));
        let turn = setup.turn(second);
        let continues = matches!(&turn, Poll::Ready(Ok(Turn::Attempt(next))) if next.id == id);
        assert_eq!(continues, handed_on, "{n}: {turn:?}");
    }
}

/// The next member has its own retry timeout, so it must not continue an attempt that has been without an answer for
/// that long.
#[test]
fn a_member_that_fails_leaves_its_attempt_to_no_other() {
    let setup = setup();
    let mut first = pin!(setup.acquire(setup.request(None)));
    assert!(poll(first.as_mut()).is_pending());
    let second = setup.join();
    assert_eq!(finish(first).unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(matches!(setup.turn(second), Poll::Ready(Err(SharedFailure { .. }))));
    assert_eq!(setup.cleanups(), 1);
}

/// No timer is set for it, because an executor may not support one that long.
#[test]
fn a_timeout_past_the_range_of_the_clock_is_no_limit() {
    let setup = setup();
    let start = setup.context.now();
    let failed = finish(setup.acquire(setup.request(Some(Duration::MAX)))).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Unavailable);
    assert!(setup.context.now() - start >= setup.context.config.retry_timeout);
}

/// The first attempt id of the client.
fn first_id() -> AttemptId {
    AttemptId { client: Uuid::from_u128(1), n: 1 }
}

#[test]
fn a_ticket_that_is_gone_is_not_cancelled_and_another_attempt_follows() {
    let setup = setup();
    setup.answer([Answer::Queued, Answer::Queued]);
    let mut acquired = pin!(setup.acquire(setup.request(None)));
    assert!(poll(acquired.as_mut()).is_pending());
    setup.context.engine.deliver(Message::Gone { ids: vec![first_id()] }, setup.context.now());
    assert!(poll(acquired.as_mut()).is_pending());
    assert_eq!((setup.calls(), setup.cleanups()), (2, 0));
}

/// The message may be about the first copy of the request. Only the answer tells what the second copy did.
#[test]
fn a_message_while_a_request_is_sent_again_does_not_replace_its_answer() {
    let setup = setup();
    setup.answer([Answer::Unreachable, Answer::Never, Answer::Never]);
    let mut acquired = pin!(setup.acquire(setup.request(None)));
    while setup.calls() < 2 {
        assert!(poll(acquired.as_mut()).is_pending());
    }
    setup.context.deliver(vec![Message::Granted { id: first_id(), token: Token::new(1), at: 5 }]);
    assert!(poll(acquired.as_mut()).is_pending());
    assert_eq!(setup.calls(), 2);
}

/// While another task acquires for the holder, a waiting acquisition of the holder waits for it, and a try does not.
#[test]
fn a_try_does_not_wait_for_its_own_holder() {
    let setup = setup();
    setup.answer([Answer::Never]);
    let source = setup.source();
    let waiting = Request { holder: Some(Holder::new()), ..setup.request(None) };
    let tried = Request { wait: false, ..waiting.clone() };
    let (mut first, mut second) = (pin!(acquire(&source, &waiting)), pin!(acquire(&source, &waiting)));
    assert!(poll(first.as_mut()).is_pending());
    assert!(poll(second.as_mut()).is_pending());
    assert!(matches!(poll(pin!(acquire(&source, &tried))), Poll::Ready(Ok(None))));
    assert_eq!(setup.calls(), 1, "the first one's");
}

/// Delivered as by the reply to a release.
#[test]
fn a_grant_in_a_reply_is_delivered() {
    let setup = setup();
    setup.answer([Answer::Queued]);
    let mut acquired = pin!(setup.acquire(setup.request(None)));
    assert!(poll(acquired.as_mut()).is_pending());
    setup.context.deliver(vec![Message::Granted { id: first_id(), token: Token::new(1), at: 5 }]);
    assert!(matches!(poll(acquired.as_mut()), Poll::Ready(Ok(Some(_)))));
}

#[test]
fn an_acquisition_fails_after_three_grants_that_expired_before_they_were_known() {
    let cases = [(2, true, "acquired"), (3, true, "failed"), (1, false, "none")];
    for (late, wait, expected) in cases {
        let setup = setup();
        setup.answer((0..late).map(|_| Answer::Late).chain([Answer::Granted]));
        let outcome = match finish(setup.acquire(Request { wait, ..setup.request(None) })) {
            Ok(Some(_)) => "acquired",
            Ok(None) => "none",
            Err(error) if error.kind() == ErrorKind::Unavailable => "failed",
            Err(error) => panic!("{error}"),
        };
        assert_eq!(outcome, expected, "{late} of them");
    }
}

#[test]
fn an_acquisition_ends_with_its_timeout() {
    let setup = setup();
    setup.answer([Answer::Never]);
    let failed = finish(setup.acquire(setup.request(Some(Duration::from_secs(1))))).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::TimedOut);
}

#[test]
fn a_hold_is_entered_again_for_no_more_than_it_has() {
    let setup = setup();
    setup.answer([Answer::Granted]);
    let source = setup.source();
    let request = Request { holder: Some(Holder::new()), amount: 2, ..setup.request(None) };
    let enter = |amount| finish(acquire(&source, &Request { amount, ..request.clone() }));
    let first = enter(2).unwrap().unwrap();
    for amount in [1, 2] {
        assert!(Arc::ptr_eq(&enter(amount).unwrap().unwrap(), &first));
    }
    assert_eq!(enter(3).unwrap_err().kind(), ErrorKind::WouldDeadlock);
    assert_eq!(setup.calls(), 1);
}

/// A request that was sent twice may have been granted, may have expired and may be queued again.
#[test]
fn a_message_is_trusted_after_one_request_with_half_of_the_lease_left() {
    let nano = Duration::from_nanos(1);
    for (answers, after, trusted) in [
        (vec![Answer::Queued, Answer::Never], Duration::ZERO, true),
        (vec![Answer::Queued, Answer::Never], LEASE / 2 - Duration::from_millis(60), true),
        (vec![Answer::Queued, Answer::Never], LEASE / 2 - Duration::from_millis(60) + nano, false),
        (vec![Answer::Unreachable, Answer::Queued, Answer::Never], Duration::ZERO, false),
    ] {
        let setup = setup();
        let requests = answers.len() - 1;
        setup.answer(answers);
        let mut acquired = pin!(setup.acquire(setup.request(None)));
        while setup.calls() < requests {
            assert!(poll(acquired.as_mut()).is_pending());
        }
        setup.executor.advance(after);
        setup.context.deliver(vec![Message::Granted { id: first_id(), token: Token::new(1), at: 5 }]);
        assert_eq!(poll(acquired.as_mut()).is_ready(), trusted, "{requests} requests, {after:?} later");
        assert_eq!(setup.calls(), requests + usize::from(!trusted));
    }
}

/// The lease counts from the last request or heartbeat before the grant. The limit is about the work, which begins
/// later.
#[test]
fn a_limit_counts_from_when_the_grant_is_known() {
    let setup = setup();
    setup.answer([Answer::Queued]);
    let request = Request { at_most: Some(3 * LEASE), ..setup.request(None) };
    let mut acquired = pin!(setup.acquire(request));
    assert!(poll(acquired.as_mut()).is_pending());
    setup.executor.advance(LEASE / 3);
    let granted = setup.context.now();
    setup.context.deliver(vec![Message::Granted { id: first_id(), token: Token::new(1), at: 5 }]);
    let Poll::Ready(Ok(Some(owned))) = poll(acquired.as_mut()) else { panic!("not acquired") };
    assert_eq!(owned.hold.term, Term::Until(granted + 3 * LEASE));
}

/// Otherwise the next request would be too late as well.
#[test]
fn a_request_that_came_too_late_tells_the_servers_time() {
    let setup = setup();
    setup.answer([Answer::Stale, Answer::Never]);
    let mut acquired = pin!(setup.acquire(setup.request(None)));
    assert!(poll(acquired.as_mut()).is_pending());
    assert_eq!(setup.calls(), 2);
    assert_ne!(setup.context.not_after(setup.context.now(), None), 0);
}
