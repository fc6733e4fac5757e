use super::*;
use crate::runtime::an_instant;
use crate::protocol::key::Kind;

mod storm;
mod unread;

const TTL: Duration = Duration::from_secs(30);

fn setup() -> (Touches, Arc<Keys>, Instant) {
    (Touches::new(Jitter::new(1)), Arc::new(Keys::new("p", Kind::Lock, "n").unwrap()), an_instant())
}

/// A touch whose answer was lost, and when it is due again.
fn unanswered() -> (Touches, Arc<Keys>, Instant, Instant) {
    let (mut touches, keys, start) = setup();
    touches.insert(&keys, 1, TTL, start, start, Some(TTL));
    touches.touch_soon(&keys, start);
    touches.due(start).unwrap();
    touches.unanswered(&keys, start, TTL);
    let again = touches.next().unwrap();
    (touches, keys, start, again)
}

#[test]
fn one_call_for_all_tickets_of_a_name_every_third_of_their_ttl() {
    let (mut touches, keys, start) = setup();
    for id in 0..64 {
        let sent = start + Duration::from_millis(id);
        touches.insert(&keys, id, TTL, sent, sent, Some(TTL));
    }
    let mut calls = 0;
    while let Some(now) = touches.next().filter(|at| *at < start + TTL * 10) {
        let (_, tickets) = touches.due(now).unwrap();
        assert_eq!(tickets.len(), 64);
        let waiting: Vec<_> = tickets.into_iter().map(|id| (id, TTL)).collect();
        touches.answered(&keys, now, now, &waiting, Some(TTL), false);
        calls += 1;
    }
    assert!((29..=34).contains(&calls), "{calls}");
}

#[test]
fn asks_when_the_lease_in_the_way_ends_but_never_polls() {
    let (mut touches, keys, start) = setup();
    let left = Duration::from_millis(700);
    touches.insert(&keys, 1, TTL, start, start, Some(left));
    let at = touches.next().unwrap();
    assert!(at >= start + left && at <= start + left + left / 10);
    touches.insert(&keys, 2, TTL, start, start, Some(Duration::from_millis(1)));
    let at = touches.next().unwrap();
    assert!(at >= start + SHORTEST && at < start + SHORTEST * 2);
    let (_, tickets) = touches.due(at).unwrap();
    assert_eq!(tickets, [1, 2]);
    assert_eq!(touches.next(), None, "one call at a time");
    touches.answered(&keys, at, at, &[(1, TTL), (2, TTL)], Some(Duration::ZERO), false);
    assert!(touches.next().unwrap() >= at + SHORTEST);
}

#[test]
fn a_gap_touches_at_once_even_if_a_call_is_under_way() {
    let (mut touches, keys, start) = setup();
    touches.insert(&keys, 1, TTL, start, start, Some(TTL));
    touches.touch_all(start);
    let (_, tickets) = touches.due(start).unwrap();
    assert_eq!(tickets, [1]);
    let later = start + Duration::from_millis(5);
    touches.touch_all(later);
    assert_eq!(touches.next(), None);
    touches.answered(&keys, start, later, &[(1, TTL)], Some(TTL), false);
    assert_eq!(touches.next(), Some(later));
}

#[test]
fn an_unanswered_touch_is_repeated_and_a_call_for_more_is_immediate() {
    let (mut touches, keys, start, again) = unanswered();
    assert!(again >= start + SHORTEST && again <= start + SHORTEST * 2);
    touches.due(again).unwrap();
    touches.answered(&keys, again, again, &[(1, TTL)], None, true);
    assert_eq!(touches.next(), Some(again));
}

#[test]
fn the_answer_to_another_request_does_not_put_off_a_touch_that_is_owed() {
    let (mut touches, keys, start, again) = unanswered();
    // What is in the way may be the very first one's grant.
    touches.insert(&keys, 2, TTL, start, start, Some(TTL));
    assert_eq!(touches.next(), Some(again));
    let (_, mut tickets) = touches.due(again).unwrap();
    tickets.sort_unstable();
    assert_eq!(tickets, [1, 2]);
    touches.answered(&keys, again, again, &[(1, TTL), (2, TTL)], Some(TTL), false);
    touches.insert(&keys, 3, TTL, again, again, Some(TTL / 10));
    let left = TTL / 10;
    assert!(touches.next().is_some_and(|at| at >= again + left && at <= again + left + SPREAD));
}

#[test]
fn big_names_are_touched_in_batches() {
    let (mut touches, keys, start) = setup();
    for id in 0..1000 {
        touches.insert(&keys, id, TTL, start, start, Some(TTL));
    }
    let mut seen = std::collections::HashSet::new();
    while seen.len() < 1000 {
        let now = touches.next().unwrap();
        assert!(now < start + TTL / 2, "a ticket was left to expire");
        let (_, tickets) = touches.due(now).unwrap();
        assert!(tickets.len() <= BATCH);
        seen.extend(tickets.iter().copied());
        let waiting: Vec<_> = tickets.into_iter().map(|id| (id, TTL)).collect();
        touches.answered(&keys, now, now, &waiting, Some(TTL), false);
    }
}

#[test]
fn nothing_stays_when_the_tickets_are_gone() {
    let (mut touches, keys, start) = setup();
    touches.insert(&keys, 1, TTL, start, start, None);
    touches.insert(&keys, 2, TTL, start, start, None);
    assert!(touches.remove(&keys, 1));
    assert!(!touches.remove(&keys, 1));
    touches.touch_soon(&keys, start);
    touches.due(start).unwrap();
    assert!(touches.remove(&keys, 2), "while a call is under way");
    touches.answered(&keys, start, start, &[(2, TTL)], None, true);
    assert_eq!(touches.next(), None);
    assert!(touches.names.is_empty() && touches.serials.is_empty() && touches.events.is_empty());
}

#[test]
fn asks_when_the_lease_of_another_hold_ends() {
    let (mut touches, keys, start) = setup();
    let soon = start + Duration::from_secs(2);
    touches.holder_ends_at(&keys, soon);
    assert_eq!(touches.next(), None, "nothing waits");
    touches.insert(&keys, 1, TTL, start, start, Some(TTL));
    touches.holder_ends_at(&keys, soon);
    assert_eq!(touches.next(), Some(soon));
    // A longer one puts nothing off, and a shorter one is no reason to poll.
    touches.holder_ends_at(&keys, start + TTL);
    assert_eq!(touches.next(), Some(soon));
    touches.holder_ends_at(&keys, start);
    assert!(touches.next().unwrap() >= start + SHORTEST);
}

/// The touch may have been executed while the hold before it was in the way.
#[test]
fn a_hold_that_begins_while_a_touch_is_under_way_is_asked_about() {
    let (mut touches, keys, start) = setup();
    touches.insert(&keys, 1, TTL, start, start, Some(TTL));
    touches.touch_soon(&keys, start);
    touches.due(start).unwrap();
    touches.holder_ends_at(&keys, start + Duration::from_secs(2));
    assert_eq!(touches.next(), None, "one call at a time");
    touches.answered(&keys, start, start, &[(1, TTL)], Some(TTL), false);
    assert_eq!(touches.next(), Some(start));
}
