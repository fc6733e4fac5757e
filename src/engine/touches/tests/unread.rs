//! Releases whose replies are not read.

use super::*;

const LATER: Duration = Duration::from_millis(50);

#[test]
fn a_reply_that_is_not_read_is_made_up_for_by_a_touch() {
    let (mut touches, keys, start) = setup();
    touches.insert(&keys, 1, TTL, start, start, Some(TTL));
    touches.unread(&keys, start + LATER);
    assert_eq!(touches.next(), Some(start + LATER));
    assert_eq!(touches.due(start + LATER).unwrap().1, [1]);
    touches.answered(&keys, start + LATER, start + LATER, &[(1, TTL)], Some(TTL), false);
    assert!(touches.next().unwrap() > start + TTL / 4, "once");
    assert!(touches.unread.first(&keys).is_none());
}

#[test]
fn a_reply_that_is_read_costs_nothing() {
    let (mut touches, keys, start) = setup();
    touches.insert(&keys, 1, TTL, start, start, Some(TTL));
    let before = touches.next();
    let unread = touches.unread(&keys, start + LATER);
    touches.read(&keys, unread);
    assert_eq!(touches.next(), before);
    // Nor without a waiter.
    touches.remove(&keys, 1);
    let unread = touches.unread(&keys, start + LATER);
    assert_eq!(touches.next(), None);
    touches.read(&keys, unread);
    assert!(touches.unread.first(&keys).is_none());
}

#[test]
fn each_of_several_replies_counts() {
    let (mut touches, keys, start) = setup();
    touches.insert(&keys, 1, TTL, start, start, Some(TTL));
    let first = touches.unread(&keys, start + LATER);
    touches.unread(&keys, start + LATER * 2);
    touches.read(&keys, first);
    assert_eq!(touches.next(), Some(start + LATER * 2));
}

/// The answer that it waits comes after the release was sent: its grant is in the reply that is not read.
#[test]
fn a_ticket_that_is_known_later_is_looked_after_too() {
    let (mut touches, keys, start) = setup();
    touches.unread(&keys, start + LATER);
    touches.insert(&keys, 1, TTL, start, start, Some(TTL));
    assert_eq!(touches.next(), Some(start + LATER));
}

/// The touch for the reply is due and has not begun. When the reply comes, that touch is not needed, but the gap's is.
#[test]
fn a_gap_counts_while_a_reply_is_looked_after() {
    for read_at_last in [true, false] {
        let (mut touches, keys, start) = setup();
        touches.insert(&keys, 1, TTL, start, start, Some(TTL));
        let unread = touches.unread(&keys, start + LATER);
        let now = start + LATER * 2;
        touches.touch_all(now);
        assert_eq!(touches.next(), Some(start + LATER), "it has its place");
        if read_at_last {
            touches.read(&keys, unread);
        }
        assert!(touches.next().unwrap() <= now);
        assert_eq!(touches.due(now).unwrap().1, [1]);
    }
}
