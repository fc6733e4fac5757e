//! Many names at once, a server that gives no answer, and waiters that would all ask at the same moment.

use std::collections::BTreeSet;

use super::*;

fn many(names: usize) -> (Heartbeats, Vec<Arc<Keys>>, Instant) {
    let (mut heartbeats, _, start) = setup();
    let names: Vec<_> = (0..names).map(|n| Arc::new(Keys::new("p", Kind::Lock, &n.to_string()).unwrap())).collect();
    for (keys, id) in names.iter().zip(0..) {
        heartbeats.insert(keys, id, TTL, start, start, Some(TTL));
    }
    (heartbeats, names, start)
}

/// Begins all heartbeats that may begin now.
fn begin(heartbeats: &mut Heartbeats, now: Instant) -> Vec<Arc<Keys>> {
    std::iter::from_fn(|| heartbeats.due(now)).map(|(keys, _)| keys).collect()
}

#[test]
fn a_gap_with_many_names_begins_no_more_calls_than_the_cap() {
    let (mut heartbeats, _, start) = many(2000);
    heartbeats.heartbeat_all(start);
    let mut seen = 0;
    while heartbeats.next() == Some(start) {
        let handoff = begin(&mut heartbeats, start);
        assert_eq!(handoff.len(), MOST_CALLS.min(2000 - seen));
        assert!(heartbeats.next().is_none_or(|at| at > start), "it would be asked again and again");
        assert_eq!(heartbeats.is_capped(start), seen + handoff.len() < 2000);
        seen += handoff.len();
        // Whatever their outcome is, others have room.
        for (n, keys) in handoff.iter().enumerate() {
            if n % 2 == 0 {
                heartbeats.answered(keys, start, start, &[], Some(TTL), false);
            } else {
                heartbeats.unanswered(keys, start, TTL, Duration::MAX);
            }
        }
    }
    assert_eq!(seen, 2000);
    assert_eq!(heartbeats.under_way, 0);
}

/// While a subscription is interrupted again and again, the same names must not come first each time until the tickets
/// of others expire.
#[test]
fn gap_after_gap_every_name_has_its_turn() {
    let (mut heartbeats, _, mut now) = many(1000);
    let mut seen = std::collections::HashSet::new();
    for _ in 0..4 {
        heartbeats.heartbeat_all(now);
        let handoff = begin(&mut heartbeats, now);
        now += SHORTEST;
        for keys in handoff {
            heartbeats.answered(&keys, now, now, &[], Some(TTL), false);
            seen.insert(keys);
        }
    }
    assert_eq!(seen.len(), 1000);
}

#[test]
fn names_with_heartbeats_at_one_moment_move_apart() {
    let (mut heartbeats, names, start) = many(200);
    heartbeats.heartbeat_all(start);
    for keys in begin(&mut heartbeats, start) {
        let id = names.iter().position(|other| *other == keys).unwrap() as u64;
        heartbeats.answered(&keys, start, start, &[(id, TTL)], Some(TTL), false);
    }
    let times: BTreeSet<Instant> = heartbeats.events.keys().map(|((at, _), _)| *at).collect();
    assert_eq!(times.len(), 200);
    let (first, last) = (*times.first().unwrap(), *times.last().unwrap());
    assert!(last - first > TTL / 60 && first >= start + TTL / 4 && last <= start + TTL / 3, "{:?}", last - first);
}

#[test]
fn waiters_behind_a_lease_that_ends_do_not_all_look_at_the_same_moment() {
    let mut looks = BTreeSet::new();
    for seed in 0..100 {
        let (_, keys, start) = setup();
        let mut heartbeats = Heartbeats::new(Jitter::new(seed));
        heartbeats.insert(&keys, 1, TTL, start, start, Some(TTL / 10));
        looks.insert(heartbeats.next().unwrap() - start);
    }
    let (first, last) = (*looks.first().unwrap(), *looks.last().unwrap());
    assert!(first >= TTL / 10 && last <= TTL / 10 + SPREAD && last - first > SPREAD / 2, "{first:?} to {last:?}");
    // For a short lease, the question comes not much later than its end.
    let (mut heartbeats, keys, start) = setup();
    heartbeats.insert(&keys, 1, TTL, start, start, Some(SHORTEST * 2));
    assert!(heartbeats.next().unwrap() <= start + SHORTEST * 2 + SHORTEST / 5);
}

/// Lets that many heartbeats fail, and returns the pauses between them.
fn pauses(heartbeats: &mut Heartbeats, keys: &Arc<Keys>, start: Instant, longest: Duration) -> Vec<Duration> {
    let mut now = start;
    let pause = |_| {
        assert!(heartbeats.due(now).is_some());
        heartbeats.unanswered(keys, now, longest, Duration::MAX);
        let next = heartbeats.next().unwrap();
        let pause = next - now;
        now = next;
        pause
    };
    (0..12).map(pause).collect()
}

#[test]
fn the_pauses_after_unanswered_heartbeats_grow_and_an_answer_resets_them() {
    let (mut heartbeats, keys, start) = setup();
    heartbeats.insert(&keys, 1, TTL, start, start, Some(TTL));
    heartbeats.heartbeat_soon(&keys, start);
    let waits = pauses(&mut heartbeats, &keys, start, TTL);
    let longest = HEARTBEAT.at_most();
    assert!(
        waits[0] <= SHORTEST * 5 / 4 && waits.iter().all(|wait| *wait >= SHORTEST && *wait <= longest),
        "{waits:?}"
    );
    assert!(waits[3] > waits[0] * 3 && waits[11] >= HEARTBEAT.longest * 3 / 4, "{waits:?}");
    assert_ne!(waits[10], waits[11], "also the longest pauses have jitter");
    let now = heartbeats.next().unwrap();
    heartbeats.due(now).unwrap();
    heartbeats.answered(&keys, now, now, &[(1, TTL)], Some(TTL), false);
    heartbeats.heartbeat_soon(&keys, now);
    assert!(pauses(&mut heartbeats, &keys, now, TTL)[0] <= SHORTEST * 5 / 4);
}

#[test]
fn no_pause_is_longer_than_there_is_time_for() {
    let (mut heartbeats, keys, start) = setup();
    heartbeats.insert(&keys, 1, TTL, start, start, Some(TTL));
    heartbeats.heartbeat_soon(&keys, start);
    let longest = SHORTEST * 4;
    let waits = pauses(&mut heartbeats, &keys, start, longest);
    assert!(waits.iter().all(|wait| *wait <= longest) && waits[11] == longest, "{waits:?}");
    let (mut heartbeats, keys, start) = setup();
    heartbeats.insert(&keys, 1, TTL, start, start, Some(TTL));
    heartbeats.heartbeat_soon(&keys, start);
    assert!(pauses(&mut heartbeats, &keys, start, Duration::ZERO).iter().all(|wait| *wait == SHORTEST), "it polls");
}

#[test]
fn a_gap_ends_a_pause() {
    let (mut heartbeats, keys, start) = setup();
    heartbeats.insert(&keys, 1, TTL, start, start, Some(TTL));
    heartbeats.heartbeat_soon(&keys, start);
    pauses(&mut heartbeats, &keys, start, TTL);
    let soon = heartbeats.next().unwrap() - SHORTEST;
    heartbeats.heartbeat_all(soon);
    assert_eq!(heartbeats.next(), Some(soon));
}
