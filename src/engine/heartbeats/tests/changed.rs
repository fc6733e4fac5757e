//! What the watchdog is told: that a heartbeat may be due sooner than it knows.

use super::*;

const NAMES: u64 = 5;

#[test]
fn nothing_is_due_sooner_unless_it_is_told() {
    let (mut heartbeats, _, mut now) = setup();
    let names: Vec<_> = (0..NAMES).map(|n| Arc::new(Keys::new("p", Kind::Lock, &n.to_string()).unwrap())).collect();
    let (mut random, mut under_way, mut unread, mut told) = (Jitter::new(7), Vec::new(), Vec::new(), 0);
    for n in 0..50_000 {
        let known = heartbeats.next();
        let dice = random.up_to(Duration::from_nanos(10 * NAMES * 4 - 1)).as_nanos() as usize;
        let keys = &names[dice / 10 % names.len()];
        let soon = Duration::from_millis(dice as u64);
        match dice % 10 {
            0 | 1 => heartbeats.insert(keys, n % 64, TTL, now, now, Some(soon * 10)),
            2 => drop(heartbeats.remove(keys, n % 64)),
            3 => heartbeats.heartbeat_all(now),
            4 => heartbeats.heartbeat_soon(keys, now),
            5 => heartbeats.holder_ends_at(keys, now + soon),
            6 => unread.push((keys.clone(), heartbeats.unread(keys, now + soon))),
            7 => unread.pop().into_iter().for_each(|(keys, id)| heartbeats.read(&keys, id)),
            8 => under_way.pop().into_iter().for_each(|(keys, tickets): (Arc<Keys>, Vec<u64>)| {
                let waiting: Vec<_> = tickets.into_iter().map(|id| (id, TTL)).collect();
                heartbeats.answered(&keys, now, now, &waiting, Some(soon), dice > 100);
            }),
            _ => {
                under_way.pop().into_iter().for_each(|(keys, _)| heartbeats.unanswered(&keys, now, TTL, Duration::MAX))
            }
        }
        let (is_changed, next) = (heartbeats.take_changed(), heartbeats.next());
        let is_sooner = next.is_some_and(|next| known.is_none_or(|known| next < known));
        assert!(is_changed || !is_sooner, "{known:?}, and then {next:?}");
        told += u32::from(is_changed);
        // The watchdog looks.
        now += Duration::from_millis(20);
        under_way.extend(std::iter::from_fn(|| heartbeats.due(now)));
        heartbeats.take_changed();
    }
    assert!((10_000..49_000).contains(&told), "{told}");
}

/// The last ticket of the name is gone meanwhile, so that its own next heartbeat tells nothing.
#[test]
fn a_call_that_ends_makes_room_for_another_name() {
    let (mut heartbeats, _, now) = setup();
    let names: Vec<_> =
        (0..=MOST_CALLS).map(|n| Arc::new(Keys::new("p", Kind::Lock, &n.to_string()).unwrap())).collect();
    for keys in &names {
        heartbeats.insert(keys, 1, TTL, now, now, Some(TTL));
    }
    heartbeats.heartbeat_all(now);
    let (ended, tickets) = std::iter::from_fn(|| heartbeats.due(now)).last().unwrap();
    assert_eq!((heartbeats.next(), tickets), (None, vec![1]), "as many as may be are under way");
    heartbeats.remove(&ended, 1);
    heartbeats.take_changed();
    heartbeats.answered(&ended, now, now, &[], None, false);
    assert!(heartbeats.take_changed() && heartbeats.next().is_some());
}
