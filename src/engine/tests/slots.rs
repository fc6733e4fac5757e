//! The inboxes of slots.

use super::*;

fn sharded() -> Setup {
    Setup { engine: Engine::new(Uuid::from_u128(1), true), now: an_instant() }
}

fn heartbeats(setup: &Setup) -> Vec<String> {
    let heartbeats = setup.engine.work(setup.now).heartbeat;
    heartbeats.iter().map(|heartbeat| heartbeat.keys.name.to_string()).collect()
}

#[test]
fn only_what_waits_opens_an_inbox() {
    let setup = sharded();
    let changed = setup.engine.listen_inboxes();
    let hold = setup.holds(&keys("held"));
    assert_eq!(setup.engine.inbox_work(setup.now).open, []);
    let mut changed = std::pin::pin!(changed);
    assert!((&mut changed).now_or_never().is_none());
    let waits = setup.waits(&keys("a"));
    assert!(changed.now_or_never().is_some(), "the reader is not woken");
    assert_eq!(setup.engine.inbox_work(setup.now).open, [keys("a").slot()]);
    setup.engine.release(&hold, setup.now);
    setup.engine.abandon(waits, setup.now);
    setup.assert_empty();
}

#[test]
fn after_a_gap_of_a_slot_the_server_is_asked_about_its_tickets_only() {
    let setup = sharded();
    setup.holds(&keys("a"));
    setup.waits(&keys("a"));
    setup.waits(&keys("b"));
    setup.engine.work(setup.now);
    setup.engine.slot_gap(keys("a").slot(), setup.now);
    assert!(setup.engine.work(setup.now).renew.is_empty());
    setup.engine.slot_gap(keys("b").slot(), setup.now);
    assert_eq!(heartbeats(&setup), ["b"]);
}

/// The message of the grant may have been lost in the gap, when the attempt was not known to wait yet.
#[test]
fn a_gap_of_a_slot_during_a_request_counts() {
    for (name, expected) in [("a", 1), ("b", 0)] {
        let mut setup = sharded();
        setup.waits(&keys("a"));
        setup.waits(&keys("b"));
        let id = setup.open(&keys("a"));
        let sent = setup.now;
        setup.now += Duration::from_secs(1);
        setup.engine.slot_gap(keys(name).slot(), setup.now);
        for heartbeat in setup.engine.work(setup.now).heartbeat {
            let ids: Vec<u64> = heartbeat.tickets.iter().map(|(id, ..)| *id).collect();
            setup.heartbeat_reply(&heartbeat.keys, &ids, 0, TicketState::Waiting);
        }
        setup.now += Duration::from_secs(1);
        let queued = Queued { sent, asked: 1, holder_left: Some(LEASE), call_again: false };
        setup.engine.queued(id, queued, setup.now);
        assert_eq!(heartbeats(&setup).len(), expected, "a gap of {name}");
    }
}
