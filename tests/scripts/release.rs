//! `lock_release`: every reply, with and without a ticket for the next turn.

use crate::lab::{Lab, NOT_HELD, RELEASED, Released, attempt, grant};

#[test]
fn released_without_waiters() {
    let (mut lab, a, _) = Lab::held();
    assert_eq!(lab.release(&a), RELEASED);
    assert_eq!(lab.server.keys(), [lab.keys[3].clone()], "only the counter is left");
}

#[test]
fn without_the_hold_there_is_nothing_to_release() {
    let (mut lab, a, _) = Lab::held();
    assert_eq!(lab.release(&attempt(2, 1)), NOT_HELD);
    assert_eq!(lab.release(&attempt(1, 2)), NOT_HELD, "another attempt of the same client");
    lab.assert_holder(&a);
    lab.expire_hold();
    assert_eq!(lab.release(&a), NOT_HELD);
}

#[test]
fn the_next_in_the_queue_gets_the_lock_and_a_message() {
    let (mut lab, a, first) = Lab::held();
    let b = attempt(2, 7).lease(12_345).span(3);
    let inbox = lab.listen(2);
    lab.acquire(&b);
    assert_eq!(lab.release(&a), RELEASED);
    lab.assert_holder(&b);
    let token: u64 = lab.inspect().token.parse().unwrap();
    assert!(token > first);
    assert_eq!(lab.read(&inbox), [grant(&b, token)]);
    assert!((1..=12_345).contains(&lab.lock_ttl()));
    lab.assert_queue(&[]);
}

#[test]
fn first_come_first_served_over_several_clients() {
    let (mut lab, a, _) = Lab::held();
    let order: Vec<_> = [(2, 1), (3, 1), (2, 2), (4, 1), (3, 2)].iter().map(|(c, n)| attempt(*c, *n)).collect();
    let inboxes: Vec<_> = [2, 3, 4].into_iter().map(|client| lab.listen(client)).collect();
    for waiter in &order {
        lab.acquire(waiter);
    }
    let (mut holder, mut last) = (a, 0);
    for next in &order {
        assert_eq!(lab.release(&holder), RELEASED);
        lab.assert_holder(next);
        let token: u64 = lab.inspect().token.parse().unwrap();
        assert!(token > last);
        assert_eq!(lab.read(&inboxes[next.client as usize - 2]), [grant(next, token)]);
        (holder, last) = (next.clone(), token);
    }
    assert_eq!(lab.release(&holder), RELEASED);
    lab.assert_free();
}

#[test]
fn the_reply_names_grants_of_a_caller_that_listens_to_it() {
    let (mut lab, a, _) = Lab::held();
    let (own, other, last) = (attempt(1, 7), attempt(2, 1), attempt(1, 8));
    // It makes no difference that its inbox has no subscriber.
    let inbox = lab.listen(2);
    for waiter in [&own, &other, &last] {
        lab.acquire(waiter);
    }
    let (word, told) = lab.release_listening(&a);
    let token = lab.inspect().token.parse().unwrap();
    assert_eq!((word.as_str(), told), ("RELEASED", vec![grant(&own, token)]));
    assert_eq!(lab.release_listening(&own), ("RELEASED".to_owned(), vec![]));
    let token = lab.inspect().token.parse().unwrap();
    assert_eq!(lab.read(&inbox), [grant(&other, token)]);
    // A late copy has no client that reads its reply, so no message goes that way.
    lab.expire_hold();
    assert_eq!(lab.release_listening(&own), ("NOT_HELD".to_owned(), vec![]));
    lab.assert_queue(&[&last]);
}

#[test]
fn an_expired_hold_that_is_released_wakes_the_next() {
    let (mut lab, a, _) = Lab::held();
    let b = attempt(2, 1);
    let inbox = lab.listen(2);
    lab.acquire(&b);
    lab.expire_hold();
    assert_eq!(lab.release(&a), NOT_HELD);
    lab.assert_holder(&b);
    assert_eq!(lab.read(&inbox).len(), 1);
}

#[test]
fn ones_own_ticket_is_granted_in_the_reply_without_a_message() {
    let (mut lab, a, first) = Lab::held();
    let inbox = lab.listen(1);
    let next = attempt(1, 2);
    let Released::Granted(token) = lab.release_for(&a, &next) else { panic!("not granted") };
    assert!(token > first);
    lab.assert_holder(&next);
    lab.assert_queue(&[]);
    assert_eq!(lab.read(&inbox), [""; 0]);
}

#[test]
fn ones_own_ticket_stands_behind_those_who_wait() {
    let (mut lab, a, _) = Lab::held();
    let (b, next) = (attempt(2, 1), attempt(1, 2));
    let inbox = lab.listen(2);
    lab.acquire(&b);
    assert_eq!(lab.release_for(&a, &next), RELEASED);
    lab.assert_holder(&b);
    lab.assert_queue(&[&next]);
    assert_eq!(lab.read(&inbox).len(), 1);
}

#[test]
fn ones_own_ticket_passes_those_who_cannot_be_told() {
    let (mut lab, a, _) = Lab::held();
    let (b, next) = (attempt(2, 1), attempt(1, 2));
    lab.acquire(&b);
    assert!(matches!(lab.release_for(&a, &next), Released::Granted(_)));
    lab.assert_queue(&[&b]);
}

#[test]
fn a_release_without_a_hold_queues_nothing() {
    let (mut lab, a, _) = Lab::held();
    assert_eq!(lab.release_for(&attempt(2, 1), &attempt(2, 2)), NOT_HELD);
    lab.assert_queue(&[]);
    lab.assert_holder(&a);
    lab.expire_hold();
    assert_eq!(lab.release_for(&a, &attempt(1, 2)), NOT_HELD);
    lab.assert_queue(&[]);
    lab.assert_free();
}

/// The ticket was queued by its own acquire before the release that carries it arrived.
#[test]
fn a_ticket_that_waits_already_is_not_queued_twice() {
    let (mut lab, a, _) = Lab::held();
    let (b, next) = (attempt(2, 1), attempt(1, 2));
    lab.acquire(&next);
    lab.acquire(&b);
    lab.listen(2);
    assert!(matches!(lab.release_for(&a, &next), Released::Granted(_)));
    lab.assert_queue(&[&b]);
}
