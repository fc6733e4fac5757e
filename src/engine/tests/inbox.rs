//! The effects of messages, and of messages that may have been missed.

use super::*;
use crate::connection::ConnectionError;
use crate::protocol::message::Message;

const SECOND: Duration = Duration::from_secs(1);

/// The attempt id with the same number of another client.
fn foreign(id: AttemptId) -> AttemptId {
    AttemptId { client: Uuid::from_u128(2), ..id }
}

/// The next time at which the watchdog has work, if nothing is due now.
fn next(setup: &Setup) -> Option<Instant> {
    let work = setup.engine.work(setup.now);
    assert!(work.heartbeat.is_empty() && work.renew.is_empty());
    work.next
}

fn heartbeats(setup: &Setup) -> usize {
    setup.engine.work(setup.now).heartbeat.len()
}

#[test]
fn a_message_decides_the_attempt_that_it_names() {
    let messages: [fn(AttemptId) -> Message; 3] = [
        |id| Message::Granted { id, token: Token::new(1), at: 1 },
        |id| Message::Open { ids: vec![id] },
        |id| Message::Gone { ids: vec![id] },
    ];
    for message in messages {
        let setup = setup();
        let id = setup.waits(&keys("a"));
        setup.engine.deliver(message(foreign(id)), setup.now);
        assert!(setup.outcome(id).is_pending(), "{:?} is about another client's", message(foreign(id)));
        setup.engine.deliver(message(id), setup.now);
        assert!(setup.outcome(id).is_ready(), "{:?}", message(id));
    }
}

#[test]
fn a_message_revokes_the_hold_that_it_names() {
    let setup = setup();
    let hold = setup.holds(&keys("a"));
    setup.engine.deliver(Message::Revoked { id: foreign(hold.id) }, setup.now);
    assert_eq!(hold.loss(setup.now), None);
    setup.engine.deliver(Message::Revoked { id: hold.id }, setup.now);
    assert_eq!(hold.loss(setup.now), Some(Loss::Revoked));
}

#[test]
fn a_message_asks_for_the_hold_that_it_names() {
    let setup = setup();
    let hold = setup.holds(&keys("a"));
    setup.engine.deliver(Message::Asked { id: foreign(hold.id) }, setup.now);
    assert!(!hold.is_asked_to_release());
    let mut waits = Box::pin(hold.asked_to_release());
    assert!(futures::FutureExt::now_or_never(&mut waits).is_none());
    setup.engine.deliver(Message::Asked { id: hold.id }, setup.now);
    assert!(hold.is_asked_to_release() && hold.loss(setup.now).is_none());
    assert!(futures::FutureExt::now_or_never(waits).is_some());
}

#[test]
fn a_hold_that_was_asked_for_before_it_was_known_is_asked_for() {
    let setup = setup();
    let id = setup.open(&keys("a"));
    assert!(setup.engine.is_open(id) && !setup.engine.is_open(foreign(id)));
    setup.engine.deliver(Message::Asked { id }, setup.now);
    let hold = setup.engine.hold(id, 1, Token::new(7), Term::Renewed, setup.now + LEASE, setup.now).unwrap();
    assert!(hold.is_asked_to_release() && !setup.engine.is_open(id));
}

/// A failover has lost the first grant but not the ticket.
#[test]
fn a_hold_that_was_granted_anew_is_lost() {
    let setup = setup();
    let hold = setup.holds(&keys("a"));
    for token in [6, 7] {
        setup.engine.deliver(Message::Granted { id: hold.id, token: Token::new(token), at: 1 }, setup.now);
        assert_eq!(hold.loss(setup.now), None, "it is known");
    }
    setup.engine.deliver(Message::Granted { id: hold.id, token: Token::new(8), at: 2 }, setup.now);
    assert_eq!(hold.loss(setup.now), Some(Loss::Gone));
    let ended = setup.engine.work(setup.now).cleanups;
    assert_eq!(ended.iter().map(|(_, cleanup)| cleanup.ticket.id).collect::<Vec<_>>(), [hold.id]);
}

#[test]
fn a_grant_that_was_revoked_before_it_was_known_is_no_hold() {
    let setup = setup();
    let id = setup.open(&keys("a"));
    setup.engine.deliver(Message::Revoked { id }, setup.now);
    let hold = setup.engine.hold(id, 1, Token::new(7), Term::Renewed, setup.now + LEASE, setup.now);
    assert!(hold.is_none());
    // The answer may be that of a request which was granted after that.
    let work = setup.engine.work(setup.now);
    assert_eq!(work.cleanups.iter().map(|(_, cleanup)| cleanup.ticket.id).collect::<Vec<_>>(), [id]);
    setup.answer(&work);
    setup.assert_empty();
}

#[test]
fn a_waiter_asks_when_the_lease_before_it_ends() {
    let setup = setup();
    let id = setup.waits(&keys("a"));
    let before = next(&setup);
    setup.engine.deliver(Message::Ends { id: foreign(id), left: SECOND }, setup.now);
    assert_eq!(next(&setup), before);
    setup.engine.deliver(Message::Ends { id, left: SECOND }, setup.now);
    assert_eq!(next(&setup), Some(setup.now + SECOND));
}

#[test]
fn after_a_gap_the_server_is_asked_about_every_ticket_and_every_hold() {
    let setup = setup();
    let hold = setup.holds(&keys("held"));
    setup.waits(&keys("a"));
    next(&setup);
    setup.engine.gap(setup.now);
    let work = setup.engine.work(setup.now);
    assert_eq!(work.renew.iter().map(|hold| hold.id).collect::<Vec<_>>(), [hold.id]);
    assert_eq!(work.heartbeat.len(), 1);
}

/// The message of the grant may have been lost in the gap, when the attempt was not known to wait yet.
#[test]
fn a_heartbeat_is_due_at_once_after_a_gap_during_the_request() {
    for (gap_after, expected) in [(None, 0), (Some(Duration::ZERO), 1), (Some(SECOND), 1)] {
        let mut setup = setup();
        let a = keys("a");
        setup.engine.gap(setup.now);
        setup.now += SECOND;
        let id = setup.open(&a);
        let sent = setup.now;
        if let Some(after) = gap_after {
            setup.engine.gap(sent + after);
        }
        setup.now += SECOND;
        let queued = Queued { sent, asked: 1, holder_left: Some(LEASE), call_again: false };
        setup.engine.queued(id, queued, setup.now);
        assert_eq!(heartbeats(&setup), expected, "a gap {gap_after:?} after the request");
    }
}

#[test]
fn a_heartbeat_is_due_at_once_if_the_script_did_not_finish() {
    let setup = setup();
    let id = setup.open(&keys("a"));
    let queued = Queued { sent: setup.now, asked: 1, holder_left: Some(LEASE), call_again: true };
    setup.engine.queued(id, queued, setup.now);
    assert_eq!(heartbeats(&setup), 1);
}

#[test]
fn a_heartbeat_is_due_at_once_after_a_lost_reply_about_the_name() {
    let setup = setup();
    let (a, b) = (keys("a"), keys("b"));
    setup.waits(&a);
    setup.waits(&b);
    next(&setup);
    setup.engine.reply_lost(&a, setup.now);
    let work = setup.engine.work(setup.now);
    assert_eq!(work.heartbeat.iter().map(|heartbeat| &*heartbeat.keys.name).collect::<Vec<_>>(), ["a"]);
}

#[test]
fn a_heartbeat_is_due_soon_after_a_reply_that_is_not_read() {
    let mut setup = setup();
    let a = keys("a");
    setup.waits(&a);
    let before = next(&setup);
    let (first, second) = (setup.engine.unread_reply(&a, setup.now), setup.engine.unread_reply(&a, setup.now));
    let look_at = next(&setup).unwrap();
    assert!(look_at > setup.now && look_at < setup.now + SECOND);
    // Two releases were sent, and one reply was read.
    drop(first);
    assert_eq!(next(&setup), Some(look_at));
    drop(second);
    assert_eq!(next(&setup), before);
    // Two releases were sent, and neither reply was read. Each of them makes a heartbeat due.
    let _first = setup.engine.unread_reply(&a, setup.now);
    let later = Duration::from_millis(20);
    let _second = setup.engine.unread_reply(&a, setup.now + later);
    setup.now = look_at;
    let work = setup.engine.work(setup.now);
    assert_eq!(work.heartbeat.len(), 1);
    setup.answer(&work);
    assert_eq!(next(&setup), Some(look_at + later));
}

#[test]
fn refused_subscriptions_are_counted() {
    let setup = setup();
    let refusal = ConnectionError::Unknown("no right to the channel".to_owned());
    for n in 1..=2 {
        setup.engine.subscription_refused(&refusal);
        assert_eq!(setup.engine.stats().subscriptions_refused, n);
    }
}

/// Waking the watchdog runs foreign code and polls all of its calls, so only earlier work wakes it.
#[test]
fn the_watchdog_is_woken_for_earlier_work_only() {
    let setup = setup();
    let wakes = |change: &dyn Fn()| {
        let listener = setup.engine.listen();
        change();
        listener.now_or_never().is_some()
    };
    let id = setup.open(&keys("a"));
    assert!(wakes(&|| setup.queue(id)), "it had nothing to do");
    next(&setup);
    let ends = |left| setup.engine.deliver(Message::Ends { id, left }, setup.now);
    assert!(wakes(&|| ends(SECOND)), "sooner");
    assert!(!wakes(&|| ends(SECOND)), "at the same time");
    assert!(!wakes(&|| ends(SECOND * 2)), "later");
    assert!(wakes(&|| ends(SECOND / 2)), "sooner again");
}
