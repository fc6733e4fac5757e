//! The queue of permits: the head first, the unreachable, what is dropped.

use super::lab::{Permits, writer};
use crate::lab::{Acquired, Attempt, CANCELLED, NOT_HELD, RELEASED, Released, State, attempt};

/// The head waits for all units while small requests come and go: none of them gets past it.
#[test]
fn a_big_request_is_not_starved() {
    let mut lab = Permits::semaphore(3);
    let holders = [attempt(1, 1), attempt(1, 2), attempt(1, 3)];
    lab.hold(&holders.iter().collect::<Vec<_>>());
    let big = attempt(2, 1).units(3);
    lab.queue(&[&big]);
    lab.listen(2);
    for (n, holder) in (10..).zip(&holders) {
        lab.try_acquire(&attempt(3, n)).busy();
        lab.queue(&[&attempt(3, 100 + n)]);
        assert_eq!(lab.release(holder), RELEASED);
        assert!(matches!(lab.try_acquire(&attempt(3, 200 + n)), Acquired::Busy { more: false, .. }));
    }
    lab.assert_held(&[&big]);
}

#[test]
fn a_big_head_that_does_not_fit_holds_the_others_up_until_its_ticket_is_over() {
    let mut lab = Permits::semaphore(3);
    let (a, big, small) = (attempt(1, 1), attempt(2, 1).units(3), attempt(3, 1));
    lab.hold(&[&a]);
    lab.queue(&[&big, &small]);
    lab.listen(3);
    assert_eq!(lab.state(&small), State::Waiting);
    lab.expire_ticket(&big);
    assert!(matches!(lab.state(&small), State::Granted(0)));
    lab.assert_held(&[&a, &small]);
    lab.assert_queue(&[]);
}

#[test]
fn a_cancelled_head_lets_those_behind_it_in() {
    let mut lab = Permits::semaphore(3);
    let (a, big, b, c) = (attempt(1, 1), attempt(2, 1).units(3), attempt(3, 1), attempt(4, 1));
    lab.hold(&[&a]);
    lab.queue(&[&big, &b, &c]);
    let _inboxes = [lab.listen(3), lab.listen(4)];
    assert_eq!(lab.cancel(&big), CANCELLED);
    lab.assert_held(&[&a, &b, &c]);
}

#[test]
fn the_unreachable_are_passed_and_keep_their_places() {
    let mut lab = Permits::semaphore(2);
    let a = attempt(1, 1).units(2);
    lab.hold(&[&a]);
    let (deaf, deaf_again, b, c, d) =
        (attempt(2, 1).units(2), attempt(2, 2), attempt(3, 1), attempt(4, 1), attempt(3, 2));
    lab.queue(&[&deaf, &deaf_again, &b, &c, &d]);
    let _inboxes = [lab.listen(3), lab.listen(4)];
    assert_eq!(lab.release(&a), RELEASED);
    lab.assert_held(&[&b, &c]);
    lab.assert_queue(&[&deaf, &deaf_again, &d]);
    // No ticket passes the first one while that does not fit. It is granted when its client can be notified.
    lab.release(&b);
    lab.assert_held(&[&c]);
    lab.listen(2);
    lab.release(&c);
    lab.assert_held(&[&deaf]);
    lab.assert_queue(&[&deaf_again, &d]);
}

/// What the head was given before it turned out that it cannot be told leaves no key without a TTL, and no unit behind.
#[test]
fn what_is_taken_back_is_taken_back_whole() {
    for (mut lab, deaf) in [(Permits::semaphore(1), attempt(2, 1)), (Permits::read_write(), writer(2, 1))] {
        let a = Attempt { client: 1, id: attempt(1, 1).id, ..deaf.clone() };
        lab.hold(&[&a]);
        lab.queue(&[&deaf]);
        lab.listen(2);
        lab.raw(&["ACL", "SETUSER", "default", "-publish"]);
        assert_eq!(lab.release(&a), RELEASED);
        lab.assert_held(&[]);
        assert_eq!(lab.ttl(super::lab::PERMITS), -2);
        assert_eq!(lab.ttl(super::lab::LEASES), -2);
        let b = attempt(3, 1);
        assert!(matches!(lab.acquire(&b), Acquired::Granted(_)));
        lab.assert_held(&[&b]);
    }
}

#[test]
fn in_a_cluster_no_waiter_is_passed() {
    let mut lab = Permits::semaphore(2);
    lab.counts_everyone = false;
    let a = attempt(1, 1).units(2);
    lab.hold(&[&a]);
    let (b, c, d) = (attempt(2, 1), attempt(3, 1), attempt(4, 1));
    lab.queue(&[&b, &c, &d]);
    lab.listen(4);
    assert_eq!(lab.release(&a), RELEASED);
    lab.assert_held(&[&b, &c]);
}

#[test]
fn many_unreachable_clients_are_looked_at_within_bounds() {
    let mut lab = Permits::semaphore(2);
    let a = attempt(1, 1).units(2);
    lab.hold(&[&a]);
    let deaf: Vec<_> = (10..30).map(|client| attempt(client, 1)).collect();
    lab.queue(&deaf.iter().collect::<Vec<_>>());
    let reachable = attempt(3, 1);
    lab.queue(&[&reachable]);
    lab.listen(3);
    assert_eq!(lab.release(&a), RELEASED);
    lab.assert_held(&[]);
    assert_eq!(lab.try_acquire(&attempt(4, 1)), Acquired::Busy { ttl: -2, more: false });
    for waiter in &deaf {
        lab.expire_ticket(waiter);
    }
    assert_eq!(lab.release(&a), NOT_HELD);
    lab.assert_held(&[&reachable]);
}

#[test]
fn the_dead_are_dropped_within_bounds() {
    let mut lab = Permits::semaphore(1);
    let a = attempt(1, 1);
    lab.hold(&[&a]);
    lab.checked = false;
    let dead: Vec<_> = (1..=150).map(|n| attempt(2, n)).collect();
    lab.queue(&dead.iter().collect::<Vec<_>>());
    let live = attempt(3, 1);
    lab.queue(&[&live]);
    for dead in &dead {
        lab.expire_ticket(dead);
    }
    lab.checked = true;
    lab.listen(3);
    assert_eq!(lab.release(&a), Released::Released { more: true });
    assert_eq!(lab.waiters().len(), 151 - 64);
    assert!(lab.heartbeat(&[]).more);
    assert!(!lab.heartbeat(&[]).more);
    lab.assert_held(&[&live]);
}

#[test]
fn half_a_queue_is_dropped_and_its_waiters_are_told() {
    for missing in [super::lab::QUEUE, super::lab::TICKETS] {
        let mut lab = Permits::semaphore(1);
        let (a, b) = (attempt(1, 1), attempt(2, 1));
        lab.hold(&[&a]);
        lab.queue(&[&b]);
        lab.del(missing);
        assert_eq!(lab.state(&b), State::Gone);
        assert_eq!(lab.acquire(&b).queued(), 1);
        lab.assert_held(&[&a]);
    }
}

/// Two tickets of one attempt id for different amounts: no client makes them, and no unit may be lost by them.
#[test]
fn one_attempt_id_is_counted_once() {
    let mut lab = Permits::semaphore(5);
    let a = attempt(1, 1).units(5);
    lab.hold(&[&a]);
    let (b, again) = (attempt(2, 1).units(2), attempt(2, 1).units(3));
    lab.queue(&[&b, &again]);
    lab.listen(2);
    assert_eq!(lab.release(&a), RELEASED);
    lab.assert_held(&[&again]);
    assert_eq!(lab.release(&again), RELEASED);
    lab.assert_held(&[]);
}

/// The one who waits for the permits of a hold with a short lease.
#[test]
fn the_next_is_told_of_the_shortest_lease_that_was_granted() {
    let mut lab = Permits::semaphore(3);
    let a = attempt(1, 1).units(3);
    lab.hold(&[&a]);
    let granted = [attempt(2, 1), attempt(2, 2).lease(3_000), attempt(2, 3).lease(4_000)];
    let next = attempt(3, 1);
    lab.queue(&granted.iter().chain([&next, &attempt(4, 1)]).collect::<Vec<_>>());
    let [_inbox, inbox, behind] = [2, 3, 4].map(|client| lab.listen(client));
    assert_eq!(lab.release(&a), RELEASED);
    lab.assert_held(&granted.iter().collect::<Vec<_>>());
    lab.assert_messages(&inbox, &[format!("ends 3000 {}", next.id)]);
    lab.assert_messages(&behind, &[]);
}
