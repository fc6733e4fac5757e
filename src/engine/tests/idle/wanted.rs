//! Retained holds that others wait for.

use super::*;

#[test]
fn an_idle_hold_is_released_when_others_want_it_or_may_have_asked() {
    let wants: [fn(&Retained); 2] = [Retained::wanted, |retained| retained.setup.engine.gap(retained.setup.now)];
    for (n, want) in wants.into_iter().enumerate() {
        let retained = Retained::idles(9);
        want(&retained);
        assert!(retained.is_released(), "{n}");
        retained.setup.assert_empty();
    }
}

#[test]
fn a_hold_that_is_wanted_while_it_is_used_does_not_become_idle() {
    let wants: [fn(&Retained); 2] = [Retained::wanted, |retained| retained.setup.engine.gap(retained.setup.now)];
    for want in wants {
        let mut retained = Retained::idles(9);
        retained.takes();
        want(&retained);
        retained.releases();
    }
}

/// The message overtakes the answer, or the grant came from a queue in which others may stand.
#[test]
fn a_hold_that_was_wanted_before_its_grant_was_known_does_not_become_idle() {
    opened(9, |setup, id| setup.engine.deliver(Message::Wanted { id }, setup.now)).releases();
    opened(9, |setup, id| {
        let queued = Queued { sent: setup.now, asked: 1, holder_left: Some(LEASE), call_again: false };
        assert!(setup.engine.queued(id, queued, setup.now));
        setup.engine.deliver(Message::Granted { id, token: Token::new(1), at: 1 }, setup.now);
        let turn =
            setup.engine.poll_turn(&CohortId::of(&keys("a"), 1), 1, setup.now, &Context::from_waker(Waker::noop()));
        assert!(matches!(turn, Poll::Ready(Ok((Ok(Turn::Attempt(_)), _)))), "{turn:?}");
    })
    .releases();
    // The message of the grant overtakes the answer.
    opened(9, |setup, id| {
        setup.engine.deliver(Message::Granted { id, token: Token::new(1), at: 1 }, setup.now);
    })
    .releases();
}

/// The message was lost, or the answer to the first request.
#[test]
fn a_hold_that_a_later_request_has_found_does_not_become_idle() {
    let mut retained = opened(9, |setup, id| {
        let queued = Queued { sent: setup.now, asked: 1, holder_left: Some(LEASE), call_again: false };
        assert!(setup.engine.queued(id, queued, setup.now));
        setup.heartbeat_reply(&keys("a"), &[id.n], 0, TicketState::Granted(Token::new(1)));
        let context = Context::from_waker(Waker::noop());
        let turn = setup.engine.poll_turn(&CohortId::of(&keys("a"), 1), 1, setup.now, &context);
        assert!(matches!(turn, Poll::Ready(Ok((Ok(Turn::Attempt(_)), _)))), "{turn:?}");
    });
    assert!(!retained.ends(9 * SECOND));
    retained.releases();
    let (setup, keys) = (setup(), keys("a"));
    let cohort = CohortId::of(&keys, 1);
    let first = setup.engine.join_asleep(&cohort, 0).ok().unwrap();
    let handoff = setup.engine.open_in_cohort(&keys, first, (1, true), LEASE, setup.now).unwrap();
    let (token, deadline) = (Token::new(1), setup.now + LEASE);
    let grant = Grant { amount: 9, token, term: Term::Renewed, deadline, replicas: 0, at_first: false };
    let hold = setup.engine.grant(handoff.id, grant, setup.now).unwrap();
    let budget = HandoffBudget::of(Kind::Lock.claim(9), token, setup.now, SECOND);
    assert!(!setup.engine.hand_off(&cohort, &mut hold.clone(), budget, Some(SECOND), setup.now));
    setup.engine.release(&hold, setup.now);
    setup.assert_empty();
}

/// The cohort has let the hold go, and its release has not begun.
#[test]
fn a_hold_that_is_wanted_just_before_its_release_leaves_nothing() {
    let mut retained = retained(1);
    assert!(!retained.ends(9 * SECOND), "it has no second token");
    retained.wanted();
    retained.setup.engine.release(&retained.hold, retained.setup.now);
    retained.setup.assert_empty();
}

#[test]
fn only_the_hold_that_is_wanted_is_released() {
    let retained = Retained::idles(9);
    for id in [
        AttemptId { n: retained.hold.id.n + 1, ..retained.hold.id },
        AttemptId { client: Uuid::nil(), ..retained.hold.id },
    ] {
        retained.setup.engine.deliver(Message::Wanted { id }, retained.setup.now);
        assert_eq!(retained.cancelled(retained.setup.now), []);
    }
    retained.wanted();
    assert!(retained.is_released());
    retained.setup.assert_empty();
}
