//! `lock_ask_ahead`: every reply, and what a second copy does.

use crate::lab::{Ahead, Around, CANCELLED, Forced, Lab, NOT_HELD, RELEASED, attempt, grant};

/// A refresh moves expiry times by the time between the two copies.
const REFRESH: u64 = 5_000;

/// More tokens than the microseconds that a test takes would be, so that the counter and not the clock decides.
const SPAN: u32 = 32;

#[test]
fn a_cohort_alone_goes_on_with_new_tokens() {
    let (mut lab, a) = (Lab::new(), attempt(1, 1).lease(15_000));
    let token = lab.acquire(&a).token();
    let next = attempt(1, 2).span(SPAN);
    let first = lab.ask_ahead(&a, token, &next).token();
    assert!(first > token);
    lab.assert_holder(&a);
    assert!(lab.lock_ttl() > 15_000, "the lease begins anew");
    assert_eq!(lab.inspect().token, first.to_string());
    // The tokens of the budget are reserved.
    lab.release(&a);
    assert!(lab.acquire(&attempt(2, 1)).token() >= first + u64::from(SPAN));
}

#[test]
fn a_lease_that_was_extended_is_not_shortened() {
    let (mut lab, a, token) = Lab::held();
    lab.renew_one(&a.clone().lease(600_000));
    lab.ask_ahead(&a, token, &attempt(1, 2)).token();
    assert!(lab.lock_ttl() > 500_000);
}

/// The server stores the longest lease beside the token of such a hold. It is no part of the token, and outlives it: a
/// call that has asked for less is late, and shortens nothing.
#[test]
fn a_hold_that_was_extended_keeps_its_longest_lease() {
    let (mut lab, a, token) = Lab::held();
    lab.extend(&a.clone().lease(600_000), 600_000);
    let next = attempt(1, 2).span(SPAN);
    let (first, second) = lab.twice(REFRESH, |lab| lab.ask_ahead(&a, token, &next).token());
    assert!(first > token && second == first);
    assert_eq!(lab.inspect().token, first.to_string());
    lab.renew_within(&a.clone().lease(15_000), 300_000);
    assert!(lab.lock_ttl() > 500_000);
    lab.acquire(&attempt(2, 1));
    assert_eq!(lab.ask_ahead(&a, first, &attempt(1, 3)), Ahead::Queued);
    assert_eq!(lab.ask_ahead(&a, token, &next).token(), first, "a late copy");
}

#[test]
fn a_cohort_queues_up_behind_others_and_keeps_its_hold() {
    let (mut lab, a, token) = Lab::held();
    let (other, next) = (attempt(2, 1), attempt(1, 2).span(SPAN));
    let (inbox, own) = (lab.listen(2), lab.listen(1));
    lab.acquire(&other);
    assert_eq!(lab.ask_ahead(&a, token, &next), Ahead::Queued);
    lab.assert_holder(&a);
    assert_eq!(lab.inspect().token, token.to_string());
    lab.assert_queue(&[&other, &next]);
    for (holder, inbox, waiter) in [(&a, inbox, &other), (&other, own, &next)] {
        assert_eq!(lab.release(holder), RELEASED);
        let token = lab.inspect().token.parse().unwrap();
        assert_eq!(lab.read(&inbox), [grant(waiter, token)]);
    }
}

#[test]
fn expired_tickets_do_not_wait() {
    let (mut lab, a, token) = Lab::held();
    lab.acquire(&attempt(2, 1).ttl(0));
    lab.ask_ahead(&a, token, &attempt(1, 2)).token();
}

#[test]
fn a_caller_that_does_not_hold_gets_nothing() {
    let (mut lab, a, token) = Lab::held();
    assert_eq!(lab.ask_ahead(&attempt(1, 3), token, &attempt(1, 2)), Ahead::NotHeld);
    lab.release(&a);
    assert_eq!(lab.ask_ahead(&a, token, &attempt(1, 2)), Ahead::NotHeld);
    lab.assert_free();
}

/// The client has given the ticket up, and would not take the grant.
#[test]
fn a_late_request_gets_nothing() {
    let (mut lab, a, token) = Lab::held();
    let late = attempt(1, 2).not_after(1);
    assert_eq!(lab.ask_ahead(&a, token, &late), Ahead::Stale);
    lab.acquire(&attempt(2, 1));
    assert_eq!(lab.ask_ahead(&a, token, &late), Ahead::Stale);
    lab.assert_queue(&[&attempt(2, 1)]);
    // A ticket that is already queued must be cancelled by its client.
    assert_eq!(lab.ask_ahead(&a, token, &attempt(1, 2)), Ahead::Queued);
    assert_eq!(lab.ask_ahead(&a, token, &late), Ahead::Queued);
}

#[test]
fn a_second_copy_changes_nothing() {
    let (mut lab, a, token) = Lab::held();
    let next = attempt(1, 2).span(SPAN);
    let (first, second) = lab.twice(REFRESH, |lab| lab.ask_ahead(&a, token, &next).token());
    assert_eq!(first, second);
    // The budget after that is requested with the new token and another ticket.
    let last = attempt(1, 3).span(SPAN);
    lab.acquire(&attempt(2, 1));
    let copies = lab.twice(REFRESH, |lab| lab.ask_ahead(&a, first, &last));
    assert_eq!(copies, (Ahead::Queued, Ahead::Queued));
    let late = lab.twice(REFRESH, |lab| lab.ask_ahead(&a, token, &next).token());
    assert_eq!(late, (first, first), "a late copy of the first");
    assert_eq!(lab.cancel(&last), CANCELLED);
    lab.cancel(&attempt(2, 1));
    lab.release(&a);
    assert_eq!(lab.twice(0, |lab| lab.ask_ahead(&a, first, &last)), (Ahead::NotHeld, Ahead::NotHeld));
    assert_eq!(lab.release(&last), NOT_HELD);
    lab.assert_free();
}

/// The counter was lost, and the clock stands before the budget: the next one is larger all the same, and so is what an
/// operator is told.
#[test]
fn tokens_grow_although_the_counter_was_lost() {
    for is_operator in [false, true] {
        let (mut lab, a, token) = Lab::held();
        let (hash, fence, far) = (lab.keys[0].clone(), lab.keys[3].clone(), token + (1 << 40));
        lab.raw(&["HSET", &hash, &a.id, &far.to_string()]);
        lab.raw(&["DEL", &fence]);
        if is_operator {
            assert_eq!(lab.force_release(&a), Forced::Released { token: far + 512, more: false });
        } else {
            assert_eq!(lab.ask_ahead(&a, far, &attempt(1, 2).span(64)).token(), far + 64);
        }
    }
}

/// The new master has the hold of the budget before, and is asked by a client that has used the lost one.
#[test]
fn tokens_grow_although_a_failover_has_lost_a_budget() {
    let (mut lab, a, token) = Lab::held();
    let (fence, far) = (lab.keys[3].clone(), token + (1 << 40));
    let next = attempt(1, 2).span(64);
    assert_eq!(lab.twice(REFRESH, |lab| lab.ask_ahead(&a, far, &next).token()), (far + 64, far + 64));
    assert_eq!(lab.inspect().token, (far + 64).to_string());
    // Behind others it keeps what it has, and goes on behind the larger of the two when they are gone.
    lab.acquire(&attempt(2, 1));
    let last = attempt(1, 3).span(64);
    assert_eq!(lab.ask_ahead(&a, 2 * far, &last), Ahead::Queued);
    lab.cancel(&attempt(2, 1));
    lab.cancel(&last);
    lab.raw(&["DEL", &fence]);
    assert_eq!(lab.ask_ahead(&a, 2 * far, &last).token(), 2 * far + 64);
}
