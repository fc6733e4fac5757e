//! The queue fragment: limits, the dead, the unreachable.

use crate::lab::{Acquired, Lab, RELEASED, Released, State, attempt};

#[test]
fn full_counts_the_living_only() {
    let (mut lab, _, _) = Lab::held();
    let waiters: Vec<_> = (2..7).map(|client| attempt(client, 1).max_waiters(5)).collect();
    for waiter in &waiters {
        lab.acquire(waiter).queued();
    }
    let late = attempt(9, 1).max_waiters(5);
    assert_eq!(lab.acquire(&late), Acquired::Full(5));
    assert_eq!(lab.acquire(&late.clone().max_waiters(4)), Acquired::Full(5));
    // A ticket that already waits keeps its place. A `try_` request does not wait.
    lab.acquire(&waiters[4]).queued();
    lab.try_acquire(&late).busy();
    lab.expire_ticket(&waiters[2]);
    // Expired tickets in the middle stay until they reach an end of the list, because searching for them would take
    // time.
    assert_eq!(lab.acquire(&late).queued(), 6);
    lab.expire_ticket(&waiters[0]);
    lab.acquire(&attempt(10, 1).max_waiters(5)).queued();
    lab.assert_queue(&[&waiters[1], &waiters[2], &waiters[3], &waiters[4], &late, &attempt(10, 1)]);
    assert_eq!(lab.acquire(&attempt(11, 1)).queued(), 7, "no limit of its own");
}

/// More dead ones than one call drops: they are not waiters all the same.
#[test]
fn full_counts_the_living_however_many_are_dead() {
    let (mut lab, _, _) = Lab::held();
    for n in 1..=60 {
        let dead = attempt(2, n);
        lab.acquire(&dead);
        if n != 30 {
            lab.expire_ticket(&dead);
        }
    }
    assert_eq!(lab.inspect().waiters, 1);
    lab.acquire(&attempt(3, 1).max_waiters(2)).queued();
    assert_eq!(lab.acquire(&attempt(4, 1).max_waiters(2)), Acquired::Full(2));
    assert!(lab.waiters().len() < 61, "the dead are dropped");
}

#[test]
fn a_free_lock_behind_dead_tickets_is_never_full() {
    let (mut lab, _, _) = Lab::held();
    for n in 1..=40 {
        let dead = attempt(2, n);
        lab.acquire(&dead);
        lab.expire_ticket(&dead);
    }
    lab.expire_hold();
    lab.acquire(&attempt(3, 1).max_waiters(5)).token();
}

/// The lease in the way is over: the head gets the lock, and its place is free.
#[test]
fn who_finds_a_free_lock_with_a_full_queue_hands_it_over() {
    let (mut lab, _, _) = Lab::held();
    let (head, late) = (attempt(2, 1), attempt(3, 1).max_waiters(1));
    lab.acquire(&head).queued();
    assert_eq!(lab.acquire(&late), Acquired::Full(1));
    lab.expire_hold();
    let inbox = lab.listen(2);
    lab.acquire(&late).queued();
    lab.assert_holder(&head);
    lab.assert_queue(&[&late]);
    assert_eq!(lab.read(&inbox).len(), 1, "the head is told");
}

/// The head cannot be told, and keeps its place. The caller is granted the lock as ever.
#[test]
fn who_finds_a_free_lock_with_a_full_queue_that_is_deaf_gets_it() {
    let (mut lab, _, _) = Lab::held();
    let deaf = attempt(2, 1);
    lab.acquire(&deaf).queued();
    lab.expire_hold();
    lab.acquire(&attempt(3, 1).max_waiters(1)).token();
    lab.assert_queue(&[&deaf]);
}

/// `dead` expired tickets, then one of a client that listens.
fn behind_the_dead(dead: u64) -> (Lab, crate::lab::Attempt, crate::lab::Attempt) {
    let (mut lab, a, _) = Lab::held();
    lab.checked = false;
    for n in 1..=dead {
        let dead = attempt(2, n);
        lab.acquire(&dead);
        lab.expire_ticket(&dead);
    }
    lab.checked = true;
    let live = attempt(3, 1);
    lab.acquire(&live);
    lab.listen(2);
    lab.listen(3);
    (lab, a, live)
}

#[test]
fn sixty_four_dead_are_dropped_in_one_call() {
    let (mut lab, a, live) = behind_the_dead(64);
    assert_eq!(lab.release(&a), RELEASED);
    lab.assert_holder(&live);
}

#[test]
fn more_dead_than_one_call_drops_and_the_calls_end() {
    let dead = 300;
    let (mut lab, a, live) = behind_the_dead(dead);
    assert_eq!(lab.release(&a), Released::Released { more: true });
    assert_eq!(lab.waiters().len() as u64, dead + 1 - 64);
    assert!(lab.heartbeat(&[]).more);
    assert_eq!(lab.try_acquire(&attempt(4, 1)), Acquired::Busy { ttl: -2, more: true });
    assert_eq!(lab.cancel_ticket("x", false), Ok(crate::lab::Cancelled::Gone { more: true }));
    let heartbeat_reply = lab.heartbeat(&[]);
    assert!(!heartbeat_reply.more && heartbeat_reply.ttl > 0);
    lab.assert_holder(&live);
    lab.assert_queue(&[]);
}

#[test]
fn a_waiter_behind_the_dead_is_told_to_call_again() {
    let (mut lab, _, live) = behind_the_dead(100);
    lab.expire_hold();
    let own = attempt(5, 1);
    assert!(matches!(lab.acquire(&own), Acquired::Queued { ttl: -2, length: 38, more: true }));
    assert_eq!(lab.acquire(&own).queued(), 1);
    lab.assert_holder(&live);
}

#[test]
fn operators_and_late_releases_call_again_too() {
    let (mut lab, a, _) = behind_the_dead(200);
    let crate::lab::Forced::Released { more: true, .. } = lab.force_release(&a) else { panic!() };
    assert_eq!(lab.force_release(&a), crate::lab::Forced::NotHeld { more: true });
    assert_eq!(lab.release(&attempt(1, 1)), Released::NotHeld { more: true });
    assert_eq!(lab.release(&attempt(1, 1)), crate::lab::NOT_HELD);
    lab.assert_holder(&attempt(3, 1));
}

#[test]
fn when_all_are_dead_no_second_call_is_needed() {
    let (mut lab, a, live) = behind_the_dead(200);
    lab.expire_ticket(&live);
    assert_eq!(lab.release(&a), RELEASED);
    lab.assert_queue(&[]);
}

#[test]
fn many_unreachable_clients_are_looked_at_within_bounds() {
    let (mut lab, a, _) = Lab::held();
    let deaf: Vec<_> = (10..30).map(|client| attempt(client, 1)).collect();
    for waiter in &deaf {
        lab.acquire(waiter);
    }
    let reachable = attempt(3, 1);
    lab.acquire(&reachable);
    lab.listen(3);
    // The seventeenth client is not checked. The lock stays free, and no request passes the waiters.
    assert_eq!(lab.release(&a), RELEASED);
    lab.assert_free();
    assert_eq!(lab.try_acquire(&attempt(4, 1)), Acquired::Busy { ttl: -2, more: false });
    assert_eq!(lab.acquire(&attempt(4, 2)), Acquired::Queued { ttl: -2, length: 22, more: false });
    // Each of them can still ask for the lock. When their tickets have expired, the next one is granted.
    for waiter in &deaf {
        lab.expire_ticket(waiter);
    }
    assert_eq!(lab.state(&attempt(9, 9)), State::Gone);
    lab.assert_holder(&reachable);
}

#[test]
fn an_unreachable_client_with_many_tickets_is_asked_once() {
    let (mut lab, a, _) = Lab::held();
    for n in 1..=100 {
        lab.acquire(&attempt(2, n));
    }
    let reachable = attempt(3, 1);
    lab.acquire(&reachable);
    lab.listen(3);
    assert_eq!(lab.release(&a), RELEASED);
    lab.assert_holder(&reachable);
    assert_eq!(lab.waiters().len(), 100);
}

#[test]
fn a_crashed_client_with_more_tickets_than_a_call_looks_at_holds_the_queue_up_for_one_ticket_ttl() {
    let (mut lab, a, _) = Lab::held();
    lab.checked = false;
    let crashed: Vec<_> = (1..=140).map(|n| attempt(2, n)).collect();
    for waiter in &crashed {
        lab.acquire(waiter);
    }
    lab.checked = true;
    let reachable = attempt(3, 1);
    lab.acquire(&reachable);
    lab.listen(3);
    assert_eq!(lab.release(&a), RELEASED);
    lab.assert_free();
    assert_eq!(
        lab.heartbeat(&[&reachable]),
        crate::lab::HeartbeatReply { ttl: -2, more: false, states: vec![State::Waiting] }
    );
    for waiter in &crashed {
        lab.expire_ticket(waiter);
    }
    let heartbeat_reply = lab.heartbeat(&[&reachable]);
    assert_eq!((heartbeat_reply.more, heartbeat_reply.states), (true, vec![State::Waiting]));
    let heartbeat_reply = lab.heartbeat(&[&reachable]);
    assert_eq!((heartbeat_reply.more, heartbeat_reply.states), (true, vec![State::Waiting]));
    assert!(matches!(lab.state(&reachable), State::Granted(_)));
}

#[test]
fn a_subscription_that_was_cut_is_passed_and_served_when_it_asks() {
    let (mut lab, a, _) = Lab::held();
    let (b, c) = (attempt(2, 1), attempt(3, 1));
    lab.listen(2);
    lab.acquire(&b);
    lab.acquire(&c);
    lab.cut_inboxes();
    assert_eq!(lab.release(&a), RELEASED);
    lab.assert_free();
    lab.assert_queue(&[&b, &c]);
    assert!(matches!(lab.state(&c), State::Granted(_)), "the first that asks");
    assert_eq!(lab.state(&b), State::Waiting);
}

/// What another program wrote into the list is dropped, and the queue goes on.
#[test]
fn junk_in_the_queue_is_dropped() {
    let (mut lab, a, _) = Lab::held();
    let b = attempt(2, 1);
    let (queue, tickets) = (lab.keys[1].clone(), lab.keys[2].clone());
    let later = (lab.now() + 60_000).to_string();
    lab.server.allow_forever(&queue);
    lab.server.allow_forever(&tickets);
    lab.raw(&["RPUSH", &queue, "junk"]);
    lab.raw(&["ZADD", &tickets, &later, "junk"]);
    for key in [&queue, &tickets] {
        lab.raw(&["PEXPIRE", key, "60000"]);
    }
    lab.acquire(&b);
    lab.listen(2);
    assert_eq!(lab.release(&a), RELEASED);
    lab.assert_holder(&b);
    lab.assert_queue(&[]);
    assert_eq!(lab.cancel(&b), crate::lab::CANCEL_RELEASED);
    assert_eq!(lab.cancel(&b), crate::lab::CANCEL_GONE);
}

/// A holder that was granted the lock with a short lease may die: the next in the queue looks when that is over, and
/// not when its own ticket needs a sign of life.
#[test]
fn the_next_in_the_queue_is_told_of_a_lease_shorter_than_it_expects() {
    let rows = [(2_000, 30_000, true), (9_999, 30_000, true), (10_000, 30_000, false), (30_000, 30_000, false)];
    let long = [(30_000, 90_001, true), (599_999, 86_400_000, true), (600_000, 86_400_000, false)];
    for (short, lease, told) in rows.into_iter().chain(long) {
        let (mut lab, a, _) = Lab::held();
        let (b, c, d) = (attempt(2, 1).lease(short), attempt(3, 1).lease(lease), attempt(4, 1).lease(lease));
        let [_inbox, next, behind] = [2, 3, 4].map(|client| lab.listen(client));
        for waiter in [&b, &c, &d] {
            lab.acquire(waiter).queued();
        }
        assert_eq!(lab.release(&a), RELEASED);
        lab.assert_holder(&b);
        let message = told.then(|| format!("ends {short} {}", c.id));
        assert_eq!(lab.read(&next), Vec::from_iter(message), "{short} before {lease}");
        assert_eq!(lab.read(&behind), [""; 0], "only the next is told");
    }
}

#[test]
fn the_dead_are_not_told_of_a_short_lease_but_the_first_that_lives() {
    let (mut lab, a, _) = Lab::held();
    let (b, dead, c) = (attempt(2, 1).lease(2_000), attempt(3, 1), attempt(4, 1));
    let [_inbox, of_dead, of_c] = [2, 3, 4].map(|client| lab.listen(client));
    for waiter in [&b, &dead, &c] {
        lab.acquire(waiter).queued();
    }
    lab.expire_ticket(&dead);
    assert_eq!(lab.release(&a), RELEASED);
    assert_eq!(lab.read(&of_dead), [""; 0]);
    assert_eq!(lab.read(&of_c), [format!("ends 2000 {}", c.id)]);
}

/// Who reads the reply is told there.
#[test]
fn the_caller_needs_no_message_about_a_short_lease() {
    let (mut lab, a, _) = Lab::held();
    let (b, own) = (attempt(2, 1).lease(2_000), attempt(1, 2));
    let [inbox, _other] = [1, 2].map(|client| lab.listen(client));
    lab.acquire(&b).queued();
    lab.acquire(&own).queued();
    assert_eq!(lab.release_listening(&a), ("RELEASED".to_owned(), vec![format!("ends 2000 {}", own.id)]));
    assert_eq!(lab.read(&inbox), [""; 0]);
    // The answer to a heartbeat says how much of the lease is left in any case.
    let (mut lab, _, _) = Lab::held();
    let [inbox, _other] = [1, 2].map(|client| lab.listen(client));
    lab.acquire(&b).queued();
    lab.acquire(&own).queued();
    lab.expire_hold();
    let heartbeat_reply = lab.heartbeat(&[&own]);
    assert!((1..=2_000).contains(&heartbeat_reply.ttl), "{heartbeat_reply:?}");
    assert_eq!(lab.read(&inbox), [""; 0]);
}
