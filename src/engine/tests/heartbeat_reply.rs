//! Heartbeats with and without an answer.

use super::*;
use crate::connection::ConnectionError;
use crate::engine::lease::deadline;
use crate::protocol::ticket::ticket_ttl;

pub(super) const RETRY_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn failure() -> Failure {
    Failure::Connection(ConnectionError::Unknown("lost".to_owned()))
}

impl Setup {
    fn fail_heartbeat(&self, keys: &Arc<Keys>, id: AttemptId) {
        self.engine.heartbeat_failed(keys, &[id.n], self.now, self.now, &failure(), RETRY_TIMEOUT);
    }

    pub(super) fn outcome(&self, id: AttemptId) -> Poll<Outcome> {
        self.engine.poll_outcome(id, &mut Context::from_waker(std::task::Waker::noop()))
    }
}

#[test]
fn failures_that_lie_apart_do_not_add_up() {
    let mut setup = setup();
    let a = keys("a");
    let id = setup.waits(&a);
    for _ in 0..3 {
        setup.engine.gap(setup.now);
        assert_eq!(setup.engine.work(setup.now).heartbeat.len(), 1);
        setup.fail_heartbeat(&a, id);
        setup.now += RETRY_TIMEOUT / 2;
        let work = setup.engine.work(setup.now);
        assert_eq!(work.heartbeat.len(), 1, "the next try");
        setup.answer(&work);
        setup.now += RETRY_TIMEOUT * 360;
    }
    assert!(setup.outcome(id).is_pending());
    // Without an answer in between, the failures add up.
    for after in [Duration::ZERO, RETRY_TIMEOUT - Duration::from_millis(1), Duration::from_millis(1)] {
        assert!(setup.outcome(id).is_pending());
        setup.now += after;
        setup.engine.gap(setup.now);
        assert_eq!(setup.engine.work(setup.now).heartbeat.len(), 1);
        setup.fail_heartbeat(&a, id);
    }
    assert!(matches!(setup.outcome(id), Poll::Ready(Outcome::Failed(..))));
    setup.engine.abandon(id, setup.now);
    setup.assert_empty();
}

/// The answer to the request itself counts as a sign of life, too.
#[test]
fn an_answer_that_it_waits_begins_anew() {
    let mut setup = setup();
    let a = keys("a");
    let id = setup.waits(&a);
    setup.engine.gap(setup.now);
    setup.engine.work(setup.now);
    setup.fail_heartbeat(&a, id);
    setup.now += RETRY_TIMEOUT;
    setup.queue(id);
    setup.engine.gap(setup.now);
    setup.engine.work(setup.now);
    setup.fail_heartbeat(&a, id);
    assert!(setup.outcome(id).is_pending());
}

#[test]
fn the_pauses_end_when_the_retry_timeout_does() {
    let mut setup = setup();
    let a = keys("a");
    let id = setup.waits(&a);
    setup.engine.gap(setup.now);
    let start = setup.now;
    let mut retry = 0;
    while setup.outcome(id).is_pending() {
        assert_eq!(setup.engine.work(setup.now).heartbeat.len(), 1);
        setup.fail_heartbeat(&a, id);
        retry += 1;
        setup.now = setup.engine.work(setup.now).next.unwrap_or(setup.now).max(setup.now);
    }
    let took = setup.now - start;
    assert!(took >= RETRY_TIMEOUT && took < RETRY_TIMEOUT + Duration::from_millis(100), "{took:?}");
    assert!((6..25).contains(&retry), "{retry} tries");
}

#[test]
fn a_ticket_that_is_gone_has_no_more_heartbeats() {
    let setup = setup();
    let a = keys("a");
    let id = setup.waits(&a);
    setup.engine.gap(setup.now);
    assert_eq!(setup.engine.work(setup.now).heartbeat.len(), 1);
    setup.heartbeat_reply(&a, &[id.n], 0, TicketState::Gone);
    assert_eq!(setup.outcome(id), Poll::Ready(Outcome::Gone));
    assert!(lock(&setup.engine.state).attempts.heartbeats.is_empty());
    setup.engine.forget(id);
    setup.assert_empty();
}

/// The network delivers a copy of the request after its first grant has ended. The message about that grant arrives
/// even later.
#[test]
fn a_grant_that_is_older_than_the_wait_is_not_believed() {
    let read_write = Kind::ReadWrite;
    for (kind, amount) in [(Kind::Lock, 1), (read_write, 9), (read_write, 1), (Kind::Semaphore { limit: 5 }, 9)] {
        let setup = setup();
        let keys = Arc::new(Keys::new("p", kind, "a").unwrap());
        let id = setup.engine.open(&keys, amount, LEASE, setup.now).unwrap();
        setup.queue(id);
        setup.engine.gap(setup.now);
        assert_eq!(setup.engine.work(setup.now).heartbeat.len(), 1);
        setup.heartbeat_reply(&keys, &[id.n], 2_000, TicketState::Waiting);
        let granted = |at| crate::protocol::message::Message::Granted { id, token: Token::new(7), at };
        setup.engine.deliver(granted(1_999), setup.now);
        assert!(setup.outcome(id).is_pending(), "{kind:?}");
        // A heartbeat is due at once.
        assert_eq!(setup.engine.work(setup.now).heartbeat.len(), 1, "{kind:?}");
        setup.engine.deliver(granted(2_000), setup.now);
        assert!(setup.outcome(id).is_ready(), "{kind:?}");
    }
}

/// Otherwise the ticket would expire between two heartbeats.
#[test]
fn a_ticket_with_a_short_lease_has_frequent_heartbeats() {
    let mut setup = setup();
    let a = keys("a");
    let lease = Duration::from_millis(600);
    let id = setup.engine.open(&a, 1, lease, setup.now).unwrap();
    setup.queue(id);
    setup.engine.gap(setup.now);
    for _ in 0..10 {
        assert_eq!(setup.engine.work(setup.now).heartbeat.len(), 1);
        setup.fail_heartbeat(&a, id);
        let next = setup.engine.work(setup.now).next.unwrap();
        assert!(next - setup.now <= lease / 6, "{:?}", next - setup.now);
        setup.now = next;
    }
}

/// A failure that is not worth a retry concerns only its own name.
#[test]
fn without_a_retry_timeout_only_the_tickets_of_the_heartbeat_fail() {
    let setup = setup();
    let (a, b) = (keys("a"), keys("b"));
    let (asked, other) = (setup.waits(&a), setup.waits(&b));
    setup.engine.gap(setup.now);
    assert_eq!(setup.engine.work(setup.now).heartbeat.len(), 2);
    setup.engine.heartbeat_failed(&a, &[asked.n], setup.now, setup.now, &failure(), Duration::ZERO);
    assert!(setup.outcome(asked).is_ready() && setup.outcome(other).is_pending());
}

/// As the lease of a hold, it counts from the last request that was answered. A refusal that no retry mends is no
/// outage.
#[test]
fn a_party_inside_waits_for_an_answer_for_as_long_as_its_lease() {
    let retry_timeout = Duration::from_millis(1);
    let mut setup = setup();
    let inside = |name| Arc::new(Keys::new("p", Kind::Inside { parties: 2, keep: 1000 }, name).unwrap());
    let (others, inside) = (inside("b"), inside("a"));
    let (party, other, no_party) = (setup.waits(&inside), setup.waits(&others), setup.waits(&keys("c")));
    let ends = deadline(setup.now, ticket_ttl(LEASE));
    let fail = |setup: &Setup, party: AttemptId| {
        setup.engine.heartbeat_failed(&inside, &[party.n], setup.now, setup.now, &failure(), retry_timeout);
    };
    setup.now += LEASE / 3;
    fail(&setup, party);
    assert!(setup.outcome(no_party).is_pending());
    for at in [setup.now + retry_timeout, ends - retry_timeout, ends] {
        assert!([party, other].iter().all(|id| setup.outcome(*id).is_pending()));
        setup.now = at;
        fail(&setup, party);
    }
    let ids = [party, other, no_party];
    assert!(ids.iter().all(|id| matches!(setup.outcome(*id), Poll::Ready(Outcome::Failed(..)))));

    // Others may have had answers between these heartbeats.
    for (retry_timeout, is_lease) in [(retry_timeout, true), (2 * LEASE, false)] {
        let party = setup.waits(&inside);
        let ends = deadline(setup.now, ticket_ttl(LEASE));
        setup.now += LEASE / 3;
        let later = (!is_lease).then_some(setup.now + retry_timeout);
        for at in [setup.now, ends].into_iter().chain(later) {
            assert!(setup.outcome(party).is_pending());
            setup.now = at;
            setup.engine.heartbeat_failed(&inside, &[party.n], at, at, &failure(), retry_timeout);
        }
        assert!(matches!(setup.outcome(party), Poll::Ready(Outcome::Failed(..))), "{retry_timeout:?}");
    }

    let party = setup.waits(&inside);
    let denied = Failure::Connection(ConnectionError::refused("NOPERM no"));
    setup.engine.heartbeat_failed(&inside, &[party.n], setup.now, setup.now, &denied, Duration::ZERO);
    assert!(matches!(setup.outcome(party), Poll::Ready(Outcome::Failed(..))));
}
