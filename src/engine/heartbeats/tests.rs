use super::*;
use crate::protocol::kind::Kind;
use crate::runtime::an_instant;

mod changed;
mod storm;
mod unread;

const TTL: Duration = Duration::from_secs(30);

fn setup() -> (Heartbeats, Arc<Keys>, Instant) {
    (Heartbeats::new(Jitter::new(1)), Arc::new(Keys::new("p", Kind::Lock, "n").unwrap()), an_instant())
}

/// Makes a heartbeat whose answer is lost. Returns the time at which the next one is due, too.
fn unanswered() -> (Heartbeats, Arc<Keys>, Instant, Instant) {
    let (mut heartbeats, keys, start) = setup();
    heartbeats.insert(&keys, 1, TTL, start, start, Some(TTL));
    heartbeats.heartbeat_soon(&keys, start);
    heartbeats.due(start).unwrap();
    heartbeats.unanswered(&keys, start, TTL, Duration::MAX);
    let again = heartbeats.next().unwrap();
    (heartbeats, keys, start, again)
}

#[test]
fn one_call_for_all_tickets_of_a_name_every_third_of_their_ttl() {
    let (mut heartbeats, keys, start) = setup();
    for id in 0..64 {
        let sent = start + Duration::from_millis(id);
        heartbeats.insert(&keys, id, TTL, sent, sent, Some(TTL));
    }
    let mut calls = 0;
    while let Some(now) = heartbeats.next().filter(|at| *at < start + TTL * 10) {
        let (_, tickets) = heartbeats.due(now).unwrap();
        assert_eq!(tickets.len(), 64);
        let waiting: Vec<_> = tickets.into_iter().map(|id| (id, TTL)).collect();
        heartbeats.answered(&keys, now, now, &waiting, Some(TTL), false);
        calls += 1;
    }
    assert!((29..=34).contains(&calls), "{calls}");
}

#[test]
fn asks_when_the_lease_in_the_way_ends_but_never_polls() {
    let (mut heartbeats, keys, start) = setup();
    let left = Duration::from_millis(700);
    heartbeats.insert(&keys, 1, TTL, start, start, Some(left));
    let at = heartbeats.next().unwrap();
    assert!(at >= start + left && at <= start + left + left / 10);
    heartbeats.insert(&keys, 2, TTL, start, start, Some(Duration::from_millis(1)));
    let at = heartbeats.next().unwrap();
    assert!(at >= start + SHORTEST && at < start + SHORTEST * 2);
    let (_, tickets) = heartbeats.due(at).unwrap();
    assert_eq!(tickets, [1, 2]);
    assert_eq!(heartbeats.next(), None, "one call at a time");
    heartbeats.answered(&keys, at, at, &[(1, TTL), (2, TTL)], Some(Duration::ZERO), false);
    assert!(heartbeats.next().unwrap() >= at + SHORTEST);
}

#[test]
fn a_gap_heartbeats_at_once_even_if_a_call_is_under_way() {
    let (mut heartbeats, keys, start) = setup();
    heartbeats.insert(&keys, 1, TTL, start, start, Some(TTL));
    heartbeats.heartbeat_all(start);
    let (_, tickets) = heartbeats.due(start).unwrap();
    assert_eq!(tickets, [1]);
    let later = start + Duration::from_millis(5);
    heartbeats.heartbeat_all(later);
    assert_eq!(heartbeats.next(), None);
    heartbeats.answered(&keys, start, later, &[(1, TTL)], Some(TTL), false);
    assert_eq!(heartbeats.next(), Some(later));
}

#[test]
fn an_unanswered_heartbeat_is_repeated_and_a_call_for_more_is_immediate() {
    let (mut heartbeats, keys, start, again) = unanswered();
    assert!(again >= start + SHORTEST && again <= start + SHORTEST * 2);
    heartbeats.due(again).unwrap();
    heartbeats.answered(&keys, again, again, &[(1, TTL)], None, true);
    assert_eq!(heartbeats.next(), Some(again));
}

#[test]
fn the_answer_to_another_request_does_not_put_off_a_heartbeat_that_is_owed() {
    let (mut heartbeats, keys, start, again) = unanswered();
    // The blocking hold may be that of the client's first ticket.
    heartbeats.insert(&keys, 2, TTL, start, start, Some(TTL));
    assert_eq!(heartbeats.next(), Some(again));
    let (_, mut tickets) = heartbeats.due(again).unwrap();
    tickets.sort_unstable();
    assert_eq!(tickets, [1, 2]);
    heartbeats.answered(&keys, again, again, &[(1, TTL), (2, TTL)], Some(TTL), false);
    heartbeats.insert(&keys, 3, TTL, again, again, Some(TTL / 10));
    let left = TTL / 10;
    assert!(heartbeats.next().is_some_and(|at| at >= again + left && at <= again + left + SPREAD));
}

#[test]
fn big_names_have_heartbeats_in_batches() {
    let (mut heartbeats, keys, start) = setup();
    for id in 0..1000 {
        heartbeats.insert(&keys, id, TTL, start, start, Some(TTL));
    }
    let mut seen = std::collections::HashSet::new();
    while seen.len() < 1000 {
        let now = heartbeats.next().unwrap();
        assert!(now < start + TTL / 2, "a ticket was left to expire");
        let (_, tickets) = heartbeats.due(now).unwrap();
        assert!(tickets.len() <= BATCH);
        seen.extend(tickets.iter().copied());
        let waiting: Vec<_> = tickets.into_iter().map(|id| (id, TTL)).collect();
        heartbeats.answered(&keys, now, now, &waiting, Some(TTL), false);
    }
}

#[test]
fn nothing_stays_when_the_tickets_are_gone() {
    let (mut heartbeats, keys, start) = setup();
    heartbeats.insert(&keys, 1, TTL, start, start, None);
    heartbeats.insert(&keys, 2, TTL, start, start, None);
    assert!(heartbeats.remove(&keys, 1));
    assert!(!heartbeats.remove(&keys, 1));
    heartbeats.heartbeat_soon(&keys, start);
    heartbeats.due(start).unwrap();
    assert!(heartbeats.remove(&keys, 2), "while a call is under way");
    heartbeats.answered(&keys, start, start, &[(2, TTL)], None, true);
    assert_eq!(heartbeats.next(), None);
    assert!(heartbeats.names.is_empty() && heartbeats.events.is_empty());
}

#[test]
fn asks_when_the_lease_of_another_hold_ends() {
    let (mut heartbeats, keys, start) = setup();
    let soon = start + Duration::from_secs(2);
    heartbeats.holder_ends_at(&keys, soon);
    assert_eq!(heartbeats.next(), None, "nothing waits");
    heartbeats.insert(&keys, 1, TTL, start, start, Some(TTL));
    heartbeats.holder_ends_at(&keys, soon);
    assert_eq!(heartbeats.next(), Some(soon));
    // A longer lease delays nothing, and a shorter one is no reason to poll.
    heartbeats.holder_ends_at(&keys, start + TTL);
    assert_eq!(heartbeats.next(), Some(soon));
    heartbeats.holder_ends_at(&keys, start);
    assert!(heartbeats.next().unwrap() >= start + SHORTEST);
}

/// The heartbeat may have been executed while the former hold was in the way.
#[test]
fn a_hold_that_begins_while_a_heartbeat_is_under_way_is_asked_about() {
    let (mut heartbeats, keys, start) = setup();
    heartbeats.insert(&keys, 1, TTL, start, start, Some(TTL));
    heartbeats.heartbeat_soon(&keys, start);
    heartbeats.due(start).unwrap();
    heartbeats.holder_ends_at(&keys, start + Duration::from_secs(2));
    assert_eq!(heartbeats.next(), None, "one call at a time");
    heartbeats.answered(&keys, start, start, &[(1, TTL)], Some(TTL), false);
    assert_eq!(heartbeats.next(), Some(start));
}
