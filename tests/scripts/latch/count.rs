//! `latch_set` and `latch_count_down`: every reply.

use super::lab::{Counted, Deleted, Inspected, Latch, NONE, Set, State, TICKETS, TTL, Waits, call};
use crate::lab::attempt;

#[test]
fn a_latch_is_set_once_until_it_is_counted_down() {
    let mut lab = Latch::new();
    assert_eq!(lab.set(&call(1), 2), Set::Set);
    assert!((TTL as i64 - 10_000..=TTL as i64).contains(&lab.inspect().ttl));
    assert_eq!(lab.try_set(&call(2), 5, 10_000), Ok(Set::Exists(2)));
    assert!(lab.inspect().ttl > 10_000, "it stays as it is");
    assert_eq!(lab.count_down(&call(3)), Counted::Count(1));
    assert_eq!(lab.set(&call(4), 5), Set::Exists(1));
    assert_eq!(lab.count_down(&call(5)), Counted::Count(0));
    assert_eq!(lab.try_set(&call(6), 7, 10_000), Ok(Set::Set));
    let Inspected { count: 7, ttl: 1..=10_000, .. } = lab.inspect() else { panic!() };
}

#[test]
fn zero_is_the_end() {
    let mut lab = Latch::of(1);
    for n in 1..4 {
        assert_eq!(lab.count_down(&call(n)), Counted::Count(0));
    }
    assert_eq!(lab.set(&call(9), 2), Set::Set);
    assert_eq!(lab.inspect().count, 2);
}

#[test]
fn what_does_not_exist_has_count_zero() {
    let mut lab = Latch::new();
    for _ in 0..2 {
        assert_eq!(lab.count_down(&call(1)), Counted::Count(0));
        assert_eq!(lab.count_down(&call(1).timeless()), Counted::Count(0));
        assert_eq!(lab.count_down(&call(1).timeless().resent()), Counted::Count(0));
        assert_eq!(lab.server.keys(), [""; 0]);
        assert_eq!(lab.inspect(), NONE);
    }
}

#[test]
fn counting_does_not_change_the_time_to_live() {
    let mut lab = Latch::new();
    assert_eq!(lab.try_set(&call(1), 3, 50_000), Ok(Set::Set));
    lab.count_down(&call(2));
    let Inspected { count: 2, ttl: 1..=50_000, .. } = lab.inspect() else { panic!() };
}

/// All of them, in one message for each client.
#[test]
fn at_zero_everybody_who_waits_is_told() {
    let mut lab = Latch::of(2);
    let waiters = [attempt(2, 1), attempt(3, 1), attempt(2, 2), attempt(4, 1), attempt(2, 3)];
    lab.queue(&waiters.iter().collect::<Vec<_>>());
    // These waiters have expired, do not listen, or were cancelled.
    lab.expire_ticket(&waiters[4], 1);
    assert!(lab.cancel(&waiters[3]));
    lab.queue(&[&attempt(5, 1)]);
    let inboxes = [2, 3, 4].map(|client| lab.listen(client));
    assert_eq!(lab.count_down(&call(1)), Counted::Count(1));
    assert_eq!(lab.read(&inboxes[0]), [""; 0]);
    assert_eq!(lab.count_down(&call(2)), Counted::Count(0));
    let told = lab.read(&inboxes[0]);
    assert_eq!(told.len(), 1, "{told:?}");
    let mut words: Vec<_> = told[0].split(' ').collect();
    assert_eq!(words.remove(0), "open");
    words.sort_unstable();
    assert_eq!(words, [&waiters[0].id, &waiters[2].id]);
    assert_eq!(lab.read(&inboxes[1]), [format!("open {}", waiters[1].id)]);
    assert_eq!(lab.read(&inboxes[2]), [""; 0]);
    assert_eq!(lab.ttl(TICKETS), -2);
    assert_eq!(lab.heartbeat(&waiters.iter().collect::<Vec<_>>()), [State::Open; 5]);
    assert_eq!(lab.heartbeat(&[&attempt(5, 1)]), [State::Open]);
}

#[test]
fn stale() {
    let mut lab = Latch::of(2);
    let past = lab.past();
    let late = call(50).not_after(past);
    assert_eq!(lab.count_down(&late), Counted::Stale);
    assert_eq!(lab.count_down(&late.clone().resent()), Counted::Stale);
    assert_eq!(lab.inspect().count, 2);
    assert_eq!(lab.wait(&attempt(1, 50).not_after(past)), Waits::Stale);
    lab.count_down(&call(1));
    lab.count_down(&call(2));
    assert_eq!(lab.set(&late, 9), Set::Stale);
    assert_eq!(lab.delete(&late), Deleted::Stale);
    assert_eq!(lab.inspect().count, 0);
    assert!(!lab.remembered().contains(&late.id));
}
