//! Grants that wait for replicas.

use super::*;
use crate::engine::Grant;
use crate::engine::confirmations::Confirmation;
use crate::engine::lease::{Hold, Term};

impl Setup {
    fn granted(&self, replicas: u32, lease: Duration) -> Arc<Hold> {
        let now = self.context.now();
        let id = self.context.engine.open(&self.keys, 1, lease, now).unwrap();
        let grant = Grant {
            amount: 1,
            token: Token::new(1),
            term: Term::Renewed,
            deadline: now + lease,
            replicas,
            at_first: true,
        };
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
