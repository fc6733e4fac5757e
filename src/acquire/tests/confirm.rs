//! Grants that wait for replicas.

use super::*;
use crate::context::tests::unreachable;
use crate::engine::Grant;
use crate::engine::confirmations::Confirmation;
use crate::engine::lease::{Hold, Term};
use crate::protocol::dispatch::Failure;

impl Setup {
    fn granted(&self, replicas: u32, lease: Duration) -> Arc<Hold> {
        let now = self.context.now();
        let id = self.context.engine.open(&self.keys, 1, lease, now).unwrap();
        let grant = Grant { amount: 1, token: Token::new(1), term: Term::Renewed, deadline: now + lease, replicas };
        self.context.engine.grant(id, grant, now).unwrap()
    }

    fn confirmed(&self, hold: &Hold, confirmation: Confirmation) {
        self.context.engine.confirmed(hold, confirmation);
    }
}

#[test]
fn a_grant_that_needs_no_replica_counts_at_once() {
    let setup = setup();
    let hold = setup.granted(0, LEASE);
    assert!(matches!(poll(pin!(confirm(&setup.context, "lock", &hold))), Poll::Ready(Ok(true))));
    assert!(setup.context.engine.work(setup.context.now()).confirm.is_empty());
}

#[test]
fn a_grant_counts_once_the_replicas_have_it() {
    for (confirmation, expected) in [(Confirmation::Acknowledged, true), (Confirmation::Gone, false)] {
        let setup = setup();
        let hold = setup.granted(2, LEASE);
        let mut confirmed = pin!(confirm(&setup.context, "lock", &hold));
        assert!(poll(confirmed.as_mut()).is_pending());
        setup.confirmed(&hold, confirmation);
        assert_eq!(finish(confirmed).unwrap(), expected);
    }
}

#[test]
fn replicas_are_asked_again_until_the_retry_timeout_or_the_end_of_the_hold() {
    let setup = setup();
    let (second, retry_timeout) = (Duration::from_secs(1), setup.context.config.retry_timeout);
    assert!(second < retry_timeout);
    let long = retry_timeout * 2;
    for (lease, after, ended) in
        [(long, retry_timeout - second, false), (long, retry_timeout, true), (second, second, true)]
    {
        let hold = setup.granted(2, lease);
        let mut confirmed = pin!(confirm(&setup.context, "lock", &hold));
        assert!(poll(confirmed.as_mut()).is_pending());
        setup.executor.advance(after);
        setup.confirmed(&hold, Confirmation::TooFew(1));
        match poll(confirmed.as_mut()) {
            Poll::Ready(Err(error)) => assert!(ended && error.kind() == ErrorKind::Unacknowledged, "{error}"),
            other => assert!(other.is_pending() && !ended, "{other:?} after {after:?} of {lease:?}"),
        }
    }
}

#[test]
fn a_failure_to_ask_the_replicas_is_retried() {
    let setup = setup();
    let hold = setup.granted(2, LEASE);
    let failure = || Confirmation::Failed(Failure::Connection(unreachable()));
    let mut confirmed = pin!(confirm(&setup.context, "lock", &hold));
    assert!(poll(confirmed.as_mut()).is_pending());
    setup.confirmed(&hold, failure());
    assert!(poll(confirmed.as_mut()).is_pending());
    assert!(poll(confirmed.as_mut()).is_pending());
    setup.executor.advance(setup.context.config.retry_timeout);
    setup.confirmed(&hold, failure());
    assert_eq!(finish(confirmed).unwrap_err().kind(), ErrorKind::Unavailable);
}
