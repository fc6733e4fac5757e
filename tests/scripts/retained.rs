//! Retained holds: those who wait ask their client, and a request that does not wait is told.

use crate::lab::{Acquired, Attempt, Inbox, Lab, RELEASED, State, attempt, grant};

/// A lab in which the first client has a retained hold and listens.
fn lab() -> (Lab, Attempt, Inbox) {
    let mut lab = Lab::new();
    let holder = attempt(1, 1).retained();
    lab.acquire(&holder).token();
    let inbox = lab.listen(1);
    (lab, holder, inbox)
}

fn wanted(holder: &Attempt) -> String {
    format!("wanted {}", holder.id)
}

#[test]
fn everyone_who_queues_up_asks_the_client_of_the_hold_and_asks_again_with_each_heartbeat() {
    let (mut lab, holder, inbox) = lab();
    let (b, c) = (attempt(2, 1), attempt(3, 1));
    lab.acquire(&b);
    lab.acquire(&c);
    assert_eq!(lab.read(&inbox), [wanted(&holder), wanted(&holder)]);
    lab.acquire(&b);
    lab.heartbeat(&[&b]);
    assert_eq!(lab.read(&inbox), [wanted(&holder), wanted(&holder)], "a resend and a heartbeat");
    // One whose ticket is gone does not wait.
    lab.heartbeat(&[&attempt(4, 1)]);
    assert_eq!(lab.read(&inbox), [""; 0]);
    lab.assert_holder(&holder);
    lab.assert_queue(&[&b, &c]);
}

#[test]
fn the_client_of_a_plain_hold_is_not_asked() {
    let (mut lab, ..) = Lab::held();
    let (inbox, b) = (lab.listen(1), attempt(2, 1).retained());
    lab.acquire(&b);
    lab.heartbeat(&[&b]);
    assert_eq!(lab.read(&inbox), [""; 0]);
}

#[test]
fn a_grant_from_the_queue_is_retained_too() {
    let (mut lab, a, _) = Lab::held();
    let (b, c) = (attempt(2, 1).retained(), attempt(3, 1));
    let inbox = lab.listen(2);
    lab.acquire(&b);
    assert_eq!(lab.release(&a), RELEASED);
    lab.assert_holder(&b);
    let token = lab.inspect().token.parse().unwrap();
    assert_eq!(lab.read(&inbox), [grant(&b, token)]);
    lab.acquire(&c);
    assert_eq!(lab.read(&inbox), [wanted(&b)]);
}

#[test]
fn one_who_gets_the_lock_asks_nobody() {
    let (mut lab, _, inbox) = lab();
    let b = attempt(2, 1).retained();
    lab.acquire(&b);
    assert_eq!(lab.read(&inbox).len(), 1);
    lab.expire_hold();
    assert!(matches!(lab.state(&b), State::Granted(_)));
    let resent = lab.acquire(&b);
    assert!(matches!(resent, Acquired::Granted(_)), "{resent:?}");
    assert_eq!(lab.read(&inbox), [""; 0]);
}

#[test]
fn a_request_that_does_not_wait_is_told_and_asks_nobody() {
    let (mut lab, _, inbox) = lab();
    let tried = lab.try_acquire(&attempt(2, 1));
    assert!(matches!(tried, Acquired::Retained { ttl: 1.., more: false }), "{tried:?}");
    assert_eq!(lab.read(&inbox), [""; 0]);
    lab.assert_queue(&[]);
}

#[test]
fn a_request_that_hands_the_lock_to_a_waiter_is_told_of_that_one() {
    for (is_retained, word) in [(true, "RETAINED"), (false, "BUSY")] {
        let (mut lab, _, _) = lab();
        let b = attempt(2, 1);
        let b = if is_retained { b.retained() } else { b };
        let _inbox = lab.listen(2);
        lab.acquire(&b);
        lab.expire_hold();
        let tried = lab.try_acquire(&attempt(3, 1));
        lab.assert_holder(&b);
        assert_eq!(matches!(tried, Acquired::Retained { .. }), is_retained, "{word}: {tried:?}");
    }
}

#[test]
fn a_retained_hold_is_renewed_released_and_cancelled_as_any_other() {
    let (mut lab, holder, _) = lab();
    assert_eq!(lab.renew_one(&holder), 1);
    assert_eq!(lab.release(&holder), RELEASED);
    lab.assert_free();
    lab.acquire(&holder).token();
    lab.cancel(&holder);
    lab.assert_free();
    // Another attempt of the same number is another attempt.
    lab.acquire(&holder).token();
    assert_ne!(lab.release(&attempt(1, 1)), RELEASED);
    lab.assert_holder(&holder);
}
