//! Releases whose replies are not read.

use super::*;

const LATER: Duration = Duration::from_millis(50);

#[test]
fn a_reply_that_is_not_read_is_made_up_for_by_a_heartbeat() {
    let (mut heartbeats, keys, start) = setup();
    heartbeats.insert(&keys, 1, TTL, start, start, Some(TTL));
    heartbeats.unread(&keys, start + LATER);
    assert_eq!(heartbeats.next(), Some(start + LATER));
    assert_eq!(heartbeats.due(start + LATER).unwrap().1, [1]);
    heartbeats.answered(&keys, start + LATER, start + LATER, &[(1, TTL)], Some(TTL), false);
    assert!(heartbeats.next().unwrap() > start + TTL / 4, "once");
    assert!(heartbeats.unread.first(&keys).is_none());
}

#[test]
fn a_reply_that_is_read_costs_nothing() {
    let (mut heartbeats, keys, start) = setup();
    heartbeats.insert(&keys, 1, TTL, start, start, Some(TTL));
    let before = heartbeats.next();
    let unread = heartbeats.unread(&keys, start + LATER);
    heartbeats.read(&keys, unread);
    assert_eq!(heartbeats.next(), before);
    // No heartbeat is due without a waiter, either.
    heartbeats.remove(&keys, 1);
    let unread = heartbeats.unread(&keys, start + LATER);
    assert_eq!(heartbeats.next(), None);
    heartbeats.read(&keys, unread);
    assert!(heartbeats.unread.first(&keys).is_none());
}

#[test]
fn each_of_several_replies_counts() {
    let (mut heartbeats, keys, start) = setup();
    heartbeats.insert(&keys, 1, TTL, start, start, Some(TTL));
    let first = heartbeats.unread(&keys, start + LATER);
    heartbeats.unread(&keys, start + LATER * 2);
    heartbeats.read(&keys, first);
    assert_eq!(heartbeats.next(), Some(start + LATER * 2));
}

/// The answer "waiting" comes after the release was sent. The grant of that ticket is in the reply that is not read.
#[test]
fn a_ticket_that_is_known_later_is_looked_after_too() {
    let (mut heartbeats, keys, start) = setup();
    heartbeats.unread(&keys, start + LATER);
    heartbeats.insert(&keys, 1, TTL, start, start, Some(TTL));
    assert_eq!(heartbeats.next(), Some(start + LATER));
}

/// The heartbeat for the unread reply is due and has not begun. When the reply comes, this heartbeat is not needed, but
/// the one for the gap is.
#[test]
fn a_gap_counts_while_a_reply_is_looked_after() {
    for read_at_last in [true, false] {
        let (mut heartbeats, keys, start) = setup();
        heartbeats.insert(&keys, 1, TTL, start, start, Some(TTL));
        let unread = heartbeats.unread(&keys, start + LATER);
        let now = start + LATER * 2;
        heartbeats.heartbeat_all(now);
        assert_eq!(heartbeats.next(), Some(start + LATER), "it has its place");
        if read_at_last {
            heartbeats.read(&keys, unread);
        }
        assert!(heartbeats.next().unwrap() <= now);
        assert_eq!(heartbeats.due(now).unwrap().1, [1]);
    }
}
