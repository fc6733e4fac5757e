//! Acquisitions that are members of one cohort.

use std::pin::Pin;

use super::*;
use crate::acquire::wait::Waiter;
use crate::context::tests::unreachable;
use crate::protocol::dispatch::Failure;

type Acquiring<'a> = Pin<Box<dyn Future<Output = Result<Option<Arc<HoldOwner>>>> + 'a>>;

impl Setup {
    /// Two acquisitions behind a member that leaves before it has asked.
    fn two_members(&self) -> [Acquiring<'_>; 2] {
        let another = self.join();
        let mut acquiring: [Acquiring<'_>; 2] =
            [Box::pin(self.acquire(self.request(None))), Box::pin(self.acquire(self.request(None)))];
        for acquired in &mut acquiring {
            assert!(poll(acquired.as_mut()).is_pending());
        }
        self.context.engine.leave(&self.cohort(), another, self.context.now());
        acquiring
    }
}

impl Setup {
    /// The heartbeats of the first member's ticket have had no answer since then, for so long that it fails.
    fn ticket_fails(&self, since: Instant, after: Duration) {
        let (ids, failure) = ([first_id().n], Failure::Connection(unreachable()));
        self.context.engine.heartbeat_failed(&self.keys, &ids, since, self.context.now(), &failure, after);
    }
}

fn owned(acquired: Poll<Result<Option<Arc<HoldOwner>>>>) -> Arc<HoldOwner> {
    match acquired {
        Poll::Ready(Ok(Some(owned))) => owned,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_hold_is_handed_off_without_a_request() {
    let setup = setup();
    let [mut first, mut second] = setup.two_members();
    setup.answer([Answer::Granted]);
    let held = owned(poll(first.as_mut()));
    assert!(poll(second.as_mut()).is_pending());
    drop(held);
    assert_eq!(owned(poll(second.as_mut())).hold.token(), Token::new(2));
    assert_eq!((setup.calls(), setup.cleanups()), (1, 1), "the last one is released");
}

#[test]
fn a_hold_with_one_token_is_released_and_asked_for_in_one_request() {
    let setup = setup();
    setup.answer([Answer::Granted, Answer::Requeued]);
    let held = finish(setup.acquire(setup.request(None))).unwrap().unwrap();
    let mut next = pin!(setup.acquire(setup.request(None)));
    assert!(poll(next.as_mut()).is_pending());
    drop(held);
    assert_eq!(owned(poll(next.as_mut())).hold.token(), Token::new(9));
    assert_eq!(setup.calls(), 2);
}

#[test]
fn a_ticket_outlives_the_member_that_asked_for_it() {
    let setup = setup();
    let [mut first, mut second] = setup.two_members();
    setup.answer([Answer::Queued]);
    assert!(poll(first.as_mut()).is_pending());
    drop(first);
    setup.context.deliver(vec![Message::Granted { id: first_id(), token: Token::new(1), at: 5 }]);
    owned(poll(second.as_mut()));
    assert_eq!(setup.calls(), 1);
}

#[test]
fn a_dropped_member_waits_no_more() {
    let setup = setup();
    let [first, second] = setup.two_members();
    assert_eq!(setup.context.engine.stats().waiting, 1);
    drop((first, second));
    assert_eq!(setup.context.engine.stats().waiting, 0);
}

/// The server's answer about the limit applies to all members that have waited since.
#[test]
fn members_behind_a_request_over_the_limit_fail_with_it() {
    let setup = setup();
    let [mut first, mut second] = setup.two_members();
    setup.answer([Answer::OverLimit, Answer::Granted]);
    for acquired in [poll(first.as_mut()), poll(second.as_mut())] {
        assert!(matches!(acquired, Poll::Ready(Err(error)) if error.kind() == ErrorKind::OverLimit));
    }
    assert_eq!(setup.calls(), 1);
}

#[test]
fn a_failure_is_shared_with_members_that_waited_when_the_request_began() {
    let setup = setup();
    let [mut first, mut second] = setup.two_members();
    // The server does not answer its request.
    assert!(poll(first.as_mut()).is_pending());
    let mut late = pin!(setup.acquire(setup.request(None)));
    assert!(poll(late.as_mut()).is_pending());
    assert_eq!(finish(first).unwrap_err().kind(), ErrorKind::Unavailable);
    let calls = setup.calls();
    assert!(matches!(poll(second.as_mut()), Poll::Ready(Err(error)) if error.kind() == ErrorKind::Unavailable));
    assert_eq!(setup.calls(), calls);
    setup.answer([Answer::Granted]);
    owned(poll(late.as_mut()));
}

#[test]
fn grants_that_expired_before_they_were_known_fail_one_member_only() {
    let setup = setup();
    let [first, mut second] = setup.two_members();
    setup.answer([Answer::Late, Answer::Late, Answer::Late, Answer::Granted]);
    assert_eq!(finish(first).unwrap_err().kind(), ErrorKind::Unavailable);
    owned(poll(second.as_mut()));
}

#[test]
fn a_ticket_without_an_answer_fails_those_that_have_waited_for_as_long() {
    let setup = setup();
    let [mut first, mut second] = setup.two_members();
    setup.answer([Answer::Queued, Answer::Granted]);
    assert!(poll(first.as_mut()).is_pending());
    let (since, time) = (setup.context.now(), Duration::from_secs(1));
    setup.executor.advance(time);
    let mut late = pin!(setup.acquire(setup.request(None)));
    assert!(poll(late.as_mut()).is_pending());
    setup.ticket_fails(since, time);
    for acquired in [poll(first.as_mut()), poll(second.as_mut())] {
        assert!(matches!(acquired, Poll::Ready(Err(error)) if error.kind() == ErrorKind::Unavailable));
    }
    assert_eq!(setup.calls(), 1);
    owned(poll(late.as_mut()));
}

/// Those whom it has failed have left before it did.
#[test]
fn a_ticket_that_has_failed_before_a_member_came_is_no_failure_of_that_member() {
    let setup = setup();
    let [mut first, second] = setup.two_members();
    setup.answer([Answer::Queued, Answer::Granted]);
    assert!(poll(first.as_mut()).is_pending());
    let (since, time) = (setup.context.now(), Duration::from_secs(1));
    setup.executor.advance(time);
    let mut late = pin!(setup.acquire(setup.request(None)));
    assert!(poll(late.as_mut()).is_pending());
    drop((first, second));
    setup.ticket_fails(since, time);
    let _held = owned(poll(late.as_mut()));
    assert_eq!((setup.calls(), setup.cleanups()), (2, 1), "it asks by itself, and the ticket is cancelled");
}

#[test]
fn a_member_that_outlives_a_ticket_has_the_time_that_it_has_left() {
    let setup = setup();
    let [mut first, second] = setup.two_members();
    setup.answer([Answer::Queued]);
    assert!(poll(first.as_mut()).is_pending());
    let (since, retry_timeout) = (setup.context.now(), setup.context.config.retry_timeout);
    setup.executor.advance(Duration::from_secs(1));
    let joined = setup.context.now();
    let mut late = pin!(setup.acquire(setup.request(None)));
    assert!(poll(late.as_mut()).is_pending());
    drop((first, second));
    setup.executor.advance(retry_timeout / 2);
    setup.ticket_fails(since, retry_timeout / 2);
    assert_eq!(finish(late).unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(setup.context.now() - joined, retry_timeout);
}

/// It joined while the request of the member before had no answer, so it has as much less time left.
#[test]
fn the_time_of_a_member_counts_from_when_it_joined() {
    for is_dropped in [false, true] {
        let setup = setup();
        let retry_timeout = setup.context.config.retry_timeout;
        let mut first: Acquiring<'_> = Box::pin(setup.acquire(setup.request(None)));
        assert!(poll(first.as_mut()).is_pending());
        setup.executor.advance(retry_timeout / 2);
        let joined = setup.context.now();
        let mut second: Acquiring<'_> = Box::pin(setup.acquire(setup.request(None)));
        assert!(poll(second.as_mut()).is_pending());
        setup.executor.advance(retry_timeout / 4);
        if is_dropped {
            drop(first);
        } else {
            assert_eq!(finish(first).unwrap_err().kind(), ErrorKind::Unavailable);
        }
        assert_eq!(finish(second).unwrap_err().kind(), ErrorKind::Unavailable);
        assert_eq!(setup.context.now() - joined, retry_timeout);
    }
}

/// Without time, a request of its own is not sent. Its error would not say what is wrong.
#[test]
fn a_member_without_time_left_fails_as_those_before_it() {
    for is_queued in [false, true] {
        let setup = setup();
        let [mut first, second] = setup.two_members();
        setup.answer(is_queued.then_some(Answer::Queued));
        assert!(poll(first.as_mut()).is_pending());
        let (since, time) = (setup.context.now(), Duration::from_secs(1));
        setup.executor.advance(time);
        let mut late = pin!(setup.acquire(setup.request(None)));
        assert!(poll(late.as_mut()).is_pending());
        drop(second);
        if is_queued {
            drop(first);
            setup.ticket_fails(since, time);
        } else {
            assert_eq!(finish(first).unwrap_err().kind(), ErrorKind::Unavailable);
        }
        setup.executor.advance(setup.context.config.retry_timeout);
        let calls = setup.calls();
        let Poll::Ready(Err(error)) = poll(late.as_mut()) else { panic!("it asks") };
        assert!(format!("{error:#}").contains("by the test"), "{error:#}");
        assert_eq!(setup.calls(), calls);
    }
}

/// The grant became known so late that the member asks once more.
#[test]
fn a_request_after_a_grant_from_the_queue_fails_those_that_waited_too() {
    let setup = setup();
    let [mut first, mut second] = setup.two_members();
    setup.answer([Answer::Queued]);
    assert!(poll(first.as_mut()).is_pending());
    setup.executor.advance(LEASE);
    setup.context.deliver(vec![Message::Granted { id: first_id(), token: Token::new(1), at: 5 }]);
    assert!(poll(first.as_mut()).is_pending());
    assert_eq!(finish(first).unwrap_err().kind(), ErrorKind::Unavailable);
    let calls = setup.calls();
    assert!(matches!(poll(second.as_mut()), Poll::Ready(Err(error)) if error.kind() == ErrorKind::Unavailable));
    assert!(calls > 1 && setup.calls() == calls);
}

/// It was answered once, so the time since its first request does not count.
#[test]
fn a_request_after_a_long_wait_has_the_whole_retry_timeout() {
    let setup = setup();
    setup.answer([Answer::Queued, Answer::Unreachable, Answer::Granted]);
    let request = Request { joins_cohort: false, ..setup.request(None) };
    let mut acquiring: Acquiring<'_> = Box::pin(setup.acquire(request));
    assert!(poll(acquiring.as_mut()).is_pending());
    assert!(setup.context.config.retry_timeout < LEASE);
    setup.executor.advance(LEASE);
    setup.context.deliver(vec![Message::Granted { id: first_id(), token: Token::new(1), at: 5 }]);
    owned(Poll::Ready(finish(acquiring)));
}

#[test]
fn a_request_may_be_executed_until_its_caller_gives_up() {
    let setup = setup();
    setup.context.observe(5_000);
    let sent = setup.context.now();
    let retry_timeout = setup.context.config.retry_timeout;
    let not_after = |until, left| {
        let attempt = PendingAttempt::open(&*setup.context, &setup.keys, 1, LEASE).unwrap();
        let retry = setup.context.retry_from("lock", &setup.keys, sent + left - retry_timeout);
        Waiter::new(&setup.context, attempt, until, &LastFailure::default()).not_after(sent, &retry)
    };
    assert_eq!(not_after(None, retry_timeout), setup.context.not_after(sent, None));
    let (one, two) = (Duration::from_secs(1), Duration::from_secs(2));
    assert_eq!(not_after(Some(sent + one), two), 6_100);
    assert_eq!(not_after(Some(sent + two), one), 6_100, "the retry timeout is over before");
}
