//! What the watchdog is told: that something may be due sooner than it knows.

use super::*;

const IDS: u64 = 8;

/// One of the changes, of which `kind` tells which.
fn change(schedule: &mut Schedule, kind: u64, id: u64, now: Instant) {
    let lease = Duration::from_secs(1 + id);
    match kind {
        0 => schedule.insert(id, now, now + lease, Some(lease / 3)),
        1 => schedule.insert(id, now, now + lease, None),
        2 => schedule.insert_due(id, now, now + lease, Some(lease / 3)),
        3 => schedule.remove(id),
        4 => schedule.renewed([(id, now + lease)], now),
        5 => schedule.renewed_last(id),
        6 => schedule.lengthen(id, now + lease * 2),
        7 => schedule.unanswered(&[id, (id + 1) % IDS], now),
        _ => schedule.verify_all(now),
    }
}

#[test]
fn nothing_is_due_sooner_unless_it_is_told() {
    let (mut schedule, mut now) = schedule();
    let mut random = Jitter::new(7);
    let mut told = 0;
    for _ in 0..50_000 {
        let known = schedule.next();
        let dice = random.up_to(Duration::from_nanos(9 * IDS * 4 - 1)).as_nanos() as u64;
        // Callers read the clock before they lock the tables, so that times come out of order.
        let read = now - random.up_to(Duration::from_millis(400));
        change(&mut schedule, dice % 9, dice / 9 % IDS, read);
        let (is_changed, next) = (schedule.take_changed(), schedule.next());
        let is_sooner = next.is_some_and(|next| known.is_none_or(|known| next < known));
        assert!(is_changed || !is_sooner, "{known:?}, and then {next:?}");
        told += u32::from(is_changed);
        if dice / 9 / IDS == 0 {
            // The watchdog looks.
            now += Duration::from_millis(300);
            schedule.due(now);
            schedule.take_changed();
        }
    }
    assert!((10_000..49_000).contains(&told), "{told}");
}
