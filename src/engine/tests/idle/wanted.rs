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
