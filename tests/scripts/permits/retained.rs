//! Retained holds of writers: those who wait ask their client, and a request that does not wait is told.

use super::lab::{FENCE, Permits, SPAN, writer};
use crate::lab::{Acquired, Attempt, Inbox, RELEASED, State, attempt, grant};

/// A read-write lock whose first client has a retained writer's hold and listens.
fn lab() -> (Permits, Attempt, Inbox) {
    let mut lab = Permits::read_write();
    let holder = writer(1, 1).retained();
    lab.acquire(&holder).token();
    let inbox = lab.listen(1);
    (lab, holder, inbox)
}

fn wanted(holder: &Attempt) -> String {
    format!("wanted {}", holder.id)
}

#[test]
fn everyone_who_queues_up_asks_the_client_of_the_hold_and_asks_again_with_each_heartbeat() {
    for is_stored_in_full in [false, true] {
        let (mut lab, holder, inbox) = lab();
        if is_stored_in_full {
            lab.store_in_full();
        }
        let (b, c) = (attempt(2, 1), writer(3, 1));
        lab.acquire(&b);
        lab.acquire(&c);
        assert_eq!(lab.read(&inbox), [wanted(&holder), wanted(&holder)]);
        lab.acquire(&b);
        lab.heartbeat(&[&b]);
        assert_eq!(lab.read(&inbox), [wanted(&holder), wanted(&holder)], "a resend and a heartbeat");
        // One whose ticket is gone does not wait.
        lab.heartbeat(&[&attempt(4, 1)]);
        assert_eq!(lab.read(&inbox), [""; 0]);
        lab.assert_queue(&[&b, &c]);
    }
}

#[test]
fn the_clients_of_plain_holds_are_not_asked() {
    for holder in [writer(1, 1), attempt(1, 1)] {
        let mut lab = Permits::read_write();
        lab.acquire(&holder).token();
        let (inbox, b) = (lab.listen(1), writer(2, 1).retained());
        lab.acquire(&b);
        lab.heartbeat(&[&b]);
        assert_eq!(lab.read(&inbox), [""; 0]);
        let tried = lab.try_acquire(&writer(3, 1));
        assert!(matches!(tried, Acquired::Busy { .. }), "{tried:?}");
    }
}

#[test]
fn a_grant_from_the_queue_is_retained_too() {
    let mut lab = Permits::read_write();
    let (a, b, c) = (writer(1, 1), writer(2, 1).retained(), attempt(3, 1));
    let first = lab.acquire(&a).token();
    let inbox = lab.listen(2);
    lab.acquire(&b);
    assert_eq!(lab.release(&a), RELEASED);
    let token = lab.token_of(&b);
    assert!(token >= first + SPAN);
    assert_eq!(lab.read(&inbox), [grant(&b, token)]);
    lab.acquire(&c);
    assert_eq!(lab.read(&inbox), [wanted(&b)]);
}

/// Its client hands out as many tokens.
#[test]
fn a_retained_writer_reserves_more_tokens() {
    let mut lab = Permits::read_write();
    let (a, b, reader) = (writer(1, 1).retained(), writer(2, 1).retained(), attempt(3, 1));
    let counter = |lab: &mut Permits| -> u64 {
        let key = lab.keys[FENCE].clone();
        redis::cmd("GET").arg(key).query(&mut lab.connection).unwrap()
    };
    let token = lab.acquire(&a).token();
    assert_eq!(counter(&mut lab), token + 511);
    // A grant from the queue too.
    let _inbox = lab.listen(2);
    lab.acquire(&b);
    assert_eq!(lab.release(&a), RELEASED);
    let token = lab.token_of(&b);
    assert_eq!(counter(&mut lab), token + 511);
    assert_eq!(lab.release(&b), RELEASED);
    assert_eq!(lab.acquire(&reader).token(), token + 511, "the last token of the last writer");
}

#[test]
fn one_who_gets_the_lock_asks_nobody() {
    let (mut lab, holder, inbox) = lab();
    let b = attempt(2, 1);
    lab.acquire(&b);
    assert_eq!(lab.read(&inbox).len(), 1);
    lab.expire_hold(&holder);
    let resent = lab.acquire(&b);
    assert!(matches!(resent, Acquired::Granted(_)), "{resent:?}");
    assert_eq!(lab.read(&inbox), [""; 0]);
}

#[test]
fn a_request_that_does_not_wait_is_told_and_asks_nobody() {
    let (mut lab, _, inbox) = lab();
    for tries in [writer(2, 1), attempt(2, 2)] {
        let tried = lab.try_acquire(&tries);
        assert!(matches!(tried, Acquired::Retained { ttl: 1.., more: false }), "{tried:?}");
    }
    assert_eq!(lab.read(&inbox), [""; 0]);
    lab.assert_queue(&[]);
}

#[test]
fn a_retained_hold_is_renewed_released_and_cancelled_as_any_other() {
    let (mut lab, holder, _) = lab();
    assert_eq!(lab.renew_one(&holder), 1);
    assert_eq!(lab.release(&holder), RELEASED);
    lab.acquire(&holder).token();
    lab.cancel(&holder);
    // Another attempt of the same number is another attempt.
    lab.acquire(&holder).token();
    assert_ne!(lab.release(&writer(1, 1)), RELEASED);
    assert!(matches!(lab.state(&holder), State::Granted(_)));
}
