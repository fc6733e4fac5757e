//! Numbers that must be unique, and the clean-ups that use them.

use std::collections::HashSet;

use super::*;

#[test]
fn no_attempt_id_is_given_out_twice() {
    let setup = setup();
    let a = keys("a");
    let mut ids = HashSet::new();
    for _ in 0..3 {
        assert!(ids.insert(setup.engine.fresh().unwrap()));
        assert!(ids.insert(setup.open(&a)));
    }
}

#[test]
fn no_two_tasks_and_no_two_clients_pause_in_step() {
    let seeds = |client| {
        let engine = Engine::new(Uuid::from_u128(client), false);
        [engine.jitter_seed(), engine.jitter_seed()]
    };
    let (a, b) = (seeds(1 << 70), seeds(2 << 70));
    assert_eq!(HashSet::from([a[0], a[1], b[0], b[1]]).len(), 4);
}

/// The ticket belongs to no attempt. Cancelling it promotes other tickets, and changes nothing else.
#[test]
fn the_rest_of_a_promotion_is_asked_for_within_one_lease() {
    let setup = setup();
    setup.engine.promote_later(&keys("a"), setup.now, LEASE);
    let work = setup.engine.work(setup.now);
    let [(_, cleanup)] = &work.cleanups[..] else { panic!("{work:?}") };
    assert_eq!(cleanup.until, setup.now + LEASE);
    let id = AttemptId { client: Uuid::from_u128(1), n: 0 };
    assert_eq!(cleanup.ticket, Kind::Lock.ticket(id, LEASE, 1));
}

/// A ticket that was queued a moment ago is nearer to the tail of its queue.
#[test]
fn a_young_ticket_is_cancelled_from_the_tail() {
    for (age, from_tail) in [(0, true), (99, true), (100, false), (5_000, false)] {
        let mut setup = setup();
        let id = setup.waits(&keys("a"));
        setup.now += Duration::from_millis(age);
        setup.engine.abandon(id, setup.now);
        let work = setup.engine.work(setup.now);
        assert_eq!(work.cleanups[0].1.from_tail, from_tail, "after {age} ms");
    }
}
