use super::*;
use crate::protocol::kind::Kind;
use crate::runtime::an_instant;

const SECOND: Duration = Duration::from_secs(1);

fn keys(name: &str) -> Keys {
    Keys::new("p", Kind::Lock, name).unwrap()
}

/// Looks at the table whenever it asks for that, until `until`. Returns the slots that were closed, with their times.
fn closed(inboxes: &mut Inboxes, from: Instant, until: Instant) -> Vec<(u16, Duration)> {
    let (mut at, mut closed) = (from, Vec::new());
    loop {
        let work = inboxes.work(at);
        closed.extend(work.close.into_iter().map(|slot| (slot, at - from)));
        match work.next {
            Some(next) if next <= until => {
                assert!(next > at, "time passes");
                at = next;
            }
            _ => return closed,
        }
    }
}

#[test]
fn the_first_wait_in_a_slot_opens_it() {
    let (mut inboxes, now) = (Inboxes::new(true), an_instant());
    assert_eq!(inboxes.work(now), InboxWork::default());
    let (a, b) = (keys("a"), keys("b"));
    inboxes.add(&a, 1);
    inboxes.add(&a, 2);
    // A heartbeat may answer twice that an attempt waits.
    inboxes.add(&a, 2);
    inboxes.add(&b, 3);
    assert!(inboxes.is_added());
    assert_eq!(inboxes.work(now).open, [a.slot(), b.slot()]);
    assert!(!inboxes.is_added());
    inboxes.remove(&a, 1);
    inboxes.add(&a, 4);
    assert_eq!(inboxes.work(now).open, []);
}

#[test]
fn a_client_with_one_inbox_opens_none() {
    let (mut inboxes, now) = (Inboxes::new(false), an_instant());
    inboxes.add(&keys("a"), 1);
    assert_eq!(inboxes.work(now), InboxWork::default());
    assert_eq!(inboxes.set_gap(keys("a").slot(), now), []);
}

#[test]
fn a_slot_closes_after_its_last_wait_and_not_before() {
    let (mut inboxes, now) = (Inboxes::new(true), an_instant());
    let (a, b) = (keys("a"), keys("b"));
    inboxes.add(&a, 1);
    inboxes.add(&b, 2);
    assert_eq!(closed(&mut inboxes, now, now + 1000 * SECOND), []);
    let now = now + 1000 * SECOND;
    inboxes.remove(&a, 1);
    let [(slot, after)] = closed(&mut inboxes, now, now + 1000 * SECOND)[..] else { panic!("one slot") };
    assert_eq!(slot, a.slot());
    assert!(after >= LINGER && after <= LINGER + 2 * LOOK, "{after:?}");
    // The slot opens again, and the other slot keeps its state.
    inboxes.add(&a, 3);
    assert_eq!(inboxes.work(now + 1001 * SECOND).open, [a.slot()]);
    assert_eq!(inboxes.set_gap(b.slot(), now), [2]);
}

#[test]
fn a_wait_in_an_idle_slot_keeps_it_open() {
    let (mut inboxes, mut now) = (Inboxes::new(true), an_instant());
    let a = keys("a");
    for n in 0..20 {
        inboxes.add(&a, n);
        assert_eq!(inboxes.work(now).open.len(), usize::from(n == 0));
        inboxes.remove(&a, n);
        let next = now + LINGER - SECOND;
        assert_eq!(closed(&mut inboxes, now, next), []);
        now = next;
    }
    assert_eq!(closed(&mut inboxes, now, now + 1000 * SECOND).len(), 1);
    assert_eq!(inboxes.work(now + 2000 * SECOND), InboxWork::default(), "no timer is left");
}

#[test]
fn a_gap_concerns_one_slot() {
    let (mut inboxes, now) = (Inboxes::new(true), an_instant());
    let (a, b) = (keys("a"), keys("b"));
    inboxes.add(&a, 1);
    inboxes.add(&b, 2);
    inboxes.add(&a, 3);
    assert_eq!(inboxes.set_gap(a.slot(), now), [1, 3]);
    assert_eq!((inboxes.last_gap(&a), inboxes.last_gap(&b)), (Some(now), None));
}
