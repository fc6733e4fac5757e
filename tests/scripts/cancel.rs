//! `lock_cancel`: tickets, holds, and what was never there.

use crate::lab::{CANCEL_GONE, CANCEL_RELEASED, CANCELLED, Lab, attempt, grant};

#[test]
fn a_ticket_goes_from_wherever_it_stands() {
    for from_tail in [false, true] {
        for gone in 0..5 {
            let (mut lab, a, _) = Lab::held();
            let mut waiters: Vec<_> = (2..7).map(|client| attempt(client, 1)).collect();
            for waiter in &waiters {
                lab.acquire(waiter);
            }
            let cancelled = waiters.remove(gone);
            assert_eq!(lab.cancel_ticket(&cancelled.ticket(), from_tail), Ok(CANCELLED));
            lab.assert_queue(&waiters.iter().collect::<Vec<_>>());
            lab.assert_holder(&a);
        }
    }
}

#[test]
fn the_last_ticket_takes_the_queue_with_it() {
    let (mut lab, _, _) = Lab::held();
    let b = attempt(2, 1);
    lab.acquire(&b);
    assert_eq!(lab.cancel(&b), CANCELLED);
    assert_eq!(lab.server.keys(), [lab.keys[0].clone(), lab.keys[3].clone()]);
}

#[test]
fn a_late_grant_is_released_and_handed_on() {
    let (mut lab, a, _) = Lab::held();
    let (b, c) = (attempt(2, 1), attempt(3, 1));
    let (_b, inbox) = (lab.listen(2), lab.listen(3));
    lab.acquire(&b);
    lab.acquire(&c);
    lab.release(&a);
    lab.assert_holder(&b);
    assert_eq!(lab.cancel(&b), CANCEL_RELEASED);
    lab.assert_holder(&c);
    let token = lab.inspect().token.parse().unwrap();
    assert_eq!(lab.read(&inbox), [grant(&c, token)]);
}

#[test]
fn an_unknown_ticket_is_gone_and_others_are_untouched() {
    let (mut lab, a, _) = Lab::held();
    let b = attempt(2, 1);
    lab.acquire(&b);
    let before = lab.dump();
    assert_eq!(lab.cancel(&attempt(3, 1)), CANCEL_GONE);
    assert_eq!(lab.cancel(&attempt(1, 2)), CANCEL_GONE, "another attempt of the holder");
    for junk in ["", "x", "a:1", "a:1/5", "token/1/1", "::/1/1"] {
        assert_eq!(lab.cancel_ticket(junk, false), Ok(CANCEL_GONE), "{junk}");
    }
    before.assert_same(&lab.dump(), 0);
    lab.assert_holder(&a);
}

#[test]
fn a_free_lock_goes_to_the_next() {
    let (mut lab, _, _) = Lab::held();
    let (b, c) = (attempt(2, 1), attempt(3, 1));
    let (_b, _c) = (lab.listen(2), lab.listen(3));
    lab.acquire(&b);
    lab.acquire(&c);
    lab.expire_hold();
    assert_eq!(lab.cancel(&b), CANCELLED);
    lab.assert_holder(&c);
    lab.expire_hold();
    let d = attempt(4, 1);
    let _d = lab.listen(4);
    lab.acquire(&attempt(5, 1)).token();
    lab.acquire(&d);
    lab.expire_hold();
    assert_eq!(lab.cancel(&attempt(6, 1)), CANCEL_GONE);
    lab.assert_holder(&d);
}

#[test]
fn an_expired_hold_has_nothing_to_release() {
    let (mut lab, a, _) = Lab::held();
    lab.expire_hold();
    assert_eq!(lab.cancel(&a), CANCEL_GONE);
    let b = attempt(2, 1);
    lab.acquire(&b).token();
    assert_eq!(lab.cancel(&a), CANCEL_GONE);
    lab.assert_holder(&b);
}
