//! `permit_ask_ahead`: every reply, and what a second copy does.

use super::lab::{ALL, FENCE, LEASES, PERMITS, Permits, QUEUE, TICKETS, writer};
use crate::lab::{Ahead, Around, Attempt, CANCELLED, NOT_HELD, RELEASED, attempt, grant};

/// A refresh moves expiry times by the time between the two copies.
const REFRESH: u64 = 5_000;

/// More tokens than the microseconds that a test takes would be, so that the counter and not the clock decides.
const MANY: u32 = 1 << 30;

/// A read-write lock with a writer, and its token. Its lease is stored short, and then in full.
fn held() -> [(Permits, Attempt, u64); 2] {
    [false, true].map(|in_full| {
        let (mut lab, a) = (Permits::read_write(), writer(1, 1).lease(15_000));
        let token = lab.acquire(&a).token();
        if in_full {
            lab.store_in_full();
        }
        (lab, a, token)
    })
}

#[test]
fn a_writer_goes_on_with_new_tokens() {
    for (mut lab, a, token) in held() {
        let first = lab.ask_ahead(&a, token, MANY, &writer(1, 2)).token();
        assert!(first > token);
        assert_eq!((lab.token_of(&a), lab.stored_token(&a)), (first, Ok(first.to_string())));
        assert!(lab.ttl(PERMITS) > 15_000, "the lease begins anew");
        // The tokens of the budget are reserved, and the counter outlives the hold.
        assert!(lab.ttl(FENCE) > 3_600_000);
        lab.assert_held(&[&a]);
        assert_eq!(lab.release(&a), RELEASED);
        assert_eq!(lab.server.keys(), [lab.keys[FENCE].clone()]);
        assert!(lab.acquire(&writer(2, 1)).token() >= first + u64::from(MANY));
    }
}

/// The longest lease is no part of the token before it, and outlives it: a call that has asked for less is late, and
/// shortens nothing.
#[test]
fn a_hold_that_was_extended_keeps_its_longest_lease() {
    for (mut lab, a, token) in held() {
        lab.extend(&a.clone().lease(600_000), 600_000);
        let first = lab.ask_ahead(&a, token, 32, &writer(1, 2)).token();
        assert!(first > token && lab.ttl(PERMITS) > 500_000);
        lab.renew_within(&a.clone().lease(15_000), 300_000);
        assert!(lab.ttl(PERMITS) > 500_000);
        assert_eq!(lab.ask_ahead(&a, token, 32, &writer(1, 2)).token(), first, "a late copy");
    }
}

#[test]
fn a_writer_queues_up_behind_others_and_keeps_its_hold() {
    for (mut lab, a, token) in held() {
        let (other, next) = (writer(2, 1), writer(1, 2));
        let (inbox, own) = (lab.listen(2), lab.listen(1));
        lab.queue(&[&other]);
        assert_eq!(lab.ask_ahead(&a, token, 32, &next), Ahead::Queued);
        lab.assert_held(&[&a]);
        assert_eq!(lab.token_of(&a), token);
        lab.assert_queue(&[&other, &next]);
        for (holder, inbox, waiter) in [(&a, inbox, &other), (&other, own, &next)] {
            assert_eq!(lab.release(holder), RELEASED);
            let token = lab.token_of(waiter);
            assert_eq!(lab.read(&inbox), [grant(waiter, token)]);
        }
    }
}

/// The new master has the hold of the budget before, and is asked by a client that has used the lost one.
#[test]
fn tokens_grow_although_a_failover_has_lost_a_budget() {
    for (mut lab, a, token) in held() {
        let far = token + (1 << 40);
        assert_eq!(lab.ask_ahead(&a, far, 64, &writer(1, 2)).token(), far + 64);
        assert_eq!(lab.token_of(&a), far + 64);
        assert_eq!(lab.ask_ahead(&a, far, 64, &writer(1, 2)).token(), far + 64, "another copy");
    }
}

/// Readers get the last token of its budget.
#[test]
fn a_reader_behind_a_writer_has_its_last_token() {
    let [(mut lab, a, token), _] = held();
    let first = lab.ask_ahead(&a, token, 64, &writer(1, 2)).token();
    lab.release(&a);
    assert_eq!(lab.acquire(&attempt(2, 1)).token(), first + 63);
}

#[test]
fn expired_tickets_do_not_wait() {
    for (mut lab, a, token) in held() {
        let other = attempt(2, 1);
        lab.queue(&[&other]);
        lab.expire_ticket(&other);
        lab.ask_ahead(&a, token, 32, &writer(1, 2)).token();
    }
}

/// Half of the queue was lost, so its order is lost.
#[test]
fn half_a_queue_is_none() {
    for lost in [QUEUE, TICKETS] {
        let [(mut lab, a, token), _] = held();
        lab.queue(&[&attempt(2, 1)]);
        let lost = lab.keys[lost].clone();
        lab.raw(&["DEL", &lost]);
        lab.ask_ahead(&a, token, 32, &writer(1, 2)).token();
        assert_eq!((lab.waiters(), lab.ttl(TICKETS)), (Vec::new(), -2));
    }
}

#[test]
fn a_caller_that_does_not_hold_gets_nothing() {
    for (mut lab, a, token) in held() {
        let next = writer(1, 2);
        assert_eq!(lab.ask_ahead(&writer(1, 3), token, 32, &next), Ahead::NotHeld);
        lab.expire_hold(&a);
        assert_eq!(lab.ask_ahead(&a, token, 32, &next), Ahead::NotHeld);
        lab.release(&a);
        assert_eq!(lab.ask_ahead(&a, token, 32, &next), Ahead::NotHeld);
        assert_eq!(lab.waiters(), [""; 0]);
    }
}

/// The client has given the ticket up, and would not take the grant.
#[test]
fn a_late_request_gets_nothing() {
    for (mut lab, a, token) in held() {
        let (late, other) = (writer(1, 2).not_after(1), attempt(2, 1));
        assert_eq!(lab.ask_ahead(&a, token, 32, &late), Ahead::Stale);
        lab.queue(&[&other]);
        assert_eq!(lab.ask_ahead(&a, token, 32, &late), Ahead::Stale);
        lab.assert_queue(&[&other]);
        // A ticket that is already queued must be cancelled by its client.
        assert_eq!(lab.ask_ahead(&a, token, 32, &writer(1, 2)), Ahead::Queued);
        assert_eq!(lab.ask_ahead(&a, token, 32, &late), Ahead::Queued);
    }
}

#[test]
fn a_second_copy_changes_nothing() {
    for (mut lab, a, token) in held() {
        let (next, last, other) = (writer(1, 2), writer(1, 3), attempt(2, 1));
        let (first, second) = lab.twice(REFRESH, |lab| lab.ask_ahead(&a, token, 32, &next).token());
        assert_eq!(first, second);
        // The budget after that is requested with the new token and another ticket.
        lab.queue(&[&other]);
        let copies = lab.twice(REFRESH, |lab| lab.ask_ahead(&a, first, 32, &last));
        assert_eq!(copies, (Ahead::Queued, Ahead::Queued));
        let late = lab.twice(REFRESH, |lab| lab.ask_ahead(&a, token, 32, &next).token());
        assert_eq!(late, (first, first), "a late copy of the first");
        assert_eq!((lab.cancel(&last), lab.cancel(&other)), (CANCELLED, CANCELLED));
        lab.release(&a);
        assert_eq!(lab.twice(0, |lab| lab.ask_ahead(&a, first, 32, &last)), (Ahead::NotHeld, Ahead::NotHeld));
        assert_eq!(lab.release(&last), NOT_HELD);
    }
}

/// Keys that belong to somebody else.
#[test]
fn keys_of_a_wrong_type_are_an_error() {
    for key in [PERMITS, LEASES, QUEUE, TICKETS, FENCE] {
        for (mut lab, a, token) in held() {
            lab.set_wrong(key);
            let before = lab.dump();
            let error = lab.try_ask_ahead(&a, token, 32, &writer(1, 2)).unwrap_err();
            assert!(error.contains("WRONGTYPE"), "{key}: {error}");
            before.assert_same(&lab.dump(), 0);
        }
    }
}

/// A hold whose counter was lost, and whose budget lies far before the clock.
fn without_counter() -> (Permits, Attempt, u64) {
    let [(mut lab, a, token), _] = held();
    let first = lab.ask_ahead(&a, token, 512, &writer(1, 2)).token();
    let (hash, far) = (lab.keys[PERMITS].clone(), first + (1 << 40));
    lab.raw(&["HSET", &hash, &a.id, &format!("{ALL} {far}")]);
    lab.del(FENCE);
    (lab, a, far)
}

/// The next budget, who takes the hold over, and who comes after an operator have larger tokens all the same.
#[test]
fn tokens_grow_although_the_counter_was_lost() {
    let (mut lab, a, token) = without_counter();
    assert_eq!(lab.ask_ahead(&a, token, 512, &writer(1, 3)).token(), token + 512);
    let (mut lab, a, token) = without_counter();
    assert_eq!(lab.change(&a, &writer(1, 3)).token(), token + 512);
    let (mut lab, a, token) = without_counter();
    assert_eq!(lab.force_release(&[&a]), (1, token + 512));
    assert_eq!(lab.acquire(&writer(2, 1)).token(), token + 513);
}

/// A reader's hold has the token of others.
#[test]
fn who_holds_less_than_all_is_no_writer() {
    let mut lab = Permits::read_write();
    let a = attempt(1, 1);
    let token = lab.acquire(&a).token();
    assert_eq!(lab.ask_ahead(&a, token, 32, &writer(1, 2)), Ahead::NotHeld);
    assert_eq!(lab.token_of(&a), token);
}
