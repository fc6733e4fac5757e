//! `permit_release`: every reply, with and without a ticket for the next turn.

use super::lab::{PERMITS, Permits, QUEUE, TICKETS};
use crate::lab::{NOT_HELD, RELEASED, Released, attempt, grant};

#[test]
fn the_last_release_leaves_nothing() {
    let mut lab = Permits::semaphore(3);
    let (a, b) = (attempt(1, 1).units(2), attempt(2, 1));
    lab.hold(&[&a, &b]);
    assert_eq!(lab.release(&a), RELEASED);
    lab.assert_held(&[&b]);
    assert_eq!(lab.release(&b), RELEASED);
    assert_eq!(lab.server.keys(), [""; 0]);
}

#[test]
fn only_the_holder_gives_back() {
    let mut lab = Permits::semaphore(2);
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    lab.hold(&[&a, &b]);
    for stranger in [attempt(3, 1), attempt(1, 2)] {
        assert_eq!(lab.release(&stranger), NOT_HELD);
    }
    for field in ["used", "limit", ""] {
        let mut unknown = attempt(9, 9);
        unknown.id = field.to_owned();
        assert_eq!(lab.release(&unknown), NOT_HELD, "{field}");
    }
    lab.assert_held(&[&a, &b]);
    lab.try_acquire(&attempt(4, 1)).busy();
}

/// Other tickets of its client may be granted by the same call: only this reply tells them.
#[test]
fn a_requeued_client_reads_its_other_grants_in_the_reply() {
    let mut lab = Permits::semaphore(3);
    let (a, gone) = (attempt(1, 1), attempt(2, 1).units(2));
    let (own, other, next) = (attempt(1, 2), attempt(3, 1), attempt(1, 3));
    lab.hold(&[&a, &gone]);
    lab.queue(&[&own, &other]);
    let inboxes = [lab.listen(1), lab.listen(3)];
    lab.expire_hold(&gone);
    let (word, told) = lab.release_listening_for(&a, &next);
    assert_eq!((word.as_str(), told), ("GRANTED", vec![grant(&own, 0)]));
    assert_eq!(lab.read(&inboxes[0]), [""; 0]);
    assert_eq!(lab.read(&inboxes[1]), [grant(&other, 0)]);
    lab.assert_held(&[&own, &other, &next]);
}

/// An expired hold gives back nothing, neither before nor after a script has purged it.
#[test]
fn an_expired_permit_gives_no_credit() {
    for purged in [false, true] {
        let mut lab = Permits::semaphore(2);
        let (a, b, c, d) = (attempt(1, 1), attempt(2, 1), attempt(3, 1), attempt(4, 1));
        lab.hold(&[&a, &b]);
        lab.expire_hold(&a);
        if purged {
            lab.hold(&[&c]);
        }
        // If nobody has had what it held, it has kept the others away until now.
        assert_eq!(lab.release(&a), if purged { NOT_HELD } else { RELEASED });
        if !purged {
            lab.hold(&[&c]);
        }
        lab.assert_held(&[&b, &c]);
        lab.try_acquire(&d).busy();
        assert_eq!(lab.release(&a), NOT_HELD);
        lab.try_acquire(&d).busy();
    }
}

/// n units given back wake n waiters of one unit each, in order.
#[test]
fn a_release_of_many_units_wakes_as_many_as_fit() {
    let mut lab = Permits::semaphore(4);
    let (a, b) = (attempt(1, 1).units(3), attempt(2, 1));
    lab.hold(&[&a, &b]);
    let waiters: Vec<_> = (10..15).map(|client| attempt(client, 1)).collect();
    lab.queue(&waiters.iter().collect::<Vec<_>>());
    let inboxes: Vec<_> = (10..15).map(|client| lab.listen(client)).collect();
    assert_eq!(lab.release(&a), RELEASED);
    lab.assert_held(&[&b, &waiters[0], &waiters[1], &waiters[2]]);
    lab.assert_queue(&[&waiters[3], &waiters[4]]);
    for (i, inbox) in inboxes.iter().enumerate() {
        let expected = if i < 3 { vec![grant(&waiters[i], 0)] } else { vec![] };
        lab.assert_messages(inbox, &expected);
    }
}

#[test]
fn small_releases_gather_for_a_big_request() {
    let mut lab = Permits::semaphore(3);
    let holders = [attempt(1, 1), attempt(2, 1), attempt(3, 1)];
    lab.hold(&holders.iter().collect::<Vec<_>>());
    let (big, small) = (attempt(4, 1).units(3), attempt(5, 1));
    lab.queue(&[&big, &small]);
    let _inboxes = [lab.listen(4), lab.listen(5)];
    for (i, holder) in holders.iter().enumerate() {
        assert_eq!(lab.release(holder), RELEASED);
        let rest = holders[i + 1..].iter().collect();
        lab.assert_held(&if i == 2 { vec![&big] } else { rest });
    }
    lab.assert_queue(&[&small]);
    assert_eq!(lab.release(&big), RELEASED);
    lab.assert_held(&[&small]);
}

#[test]
fn not_held_promotes_what_fits() {
    let mut lab = Permits::semaphore(1);
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    lab.hold(&[&a]);
    lab.queue(&[&b]);
    lab.expire_hold(&a);
    let inbox = lab.listen(2);
    assert_eq!(lab.release(&a), NOT_HELD);
    lab.assert_messages(&inbox, &[grant(&b, 0)]);
    lab.assert_held(&[&b]);
}

#[test]
fn a_ticket_for_the_next_turn() {
    let mut lab = Permits::semaphore(1);
    let (a, next) = (attempt(1, 1), attempt(1, 2));
    lab.hold(&[&a]);
    // A release without a hold queues no ticket.
    assert_eq!(lab.release_and_queue(&attempt(2, 1), Some(&next)), Ok(NOT_HELD));
    assert_eq!((lab.ttl(QUEUE), lab.ttl(TICKETS)), (-2, -2));
    assert_eq!(lab.release_and_queue(&a, Some(&next)), Ok(Released::Granted(0)));
    lab.assert_held(&[&next]);
    let b = attempt(2, 1);
    lab.queue(&[&b]);
    let inbox = lab.listen(2);
    let third = attempt(1, 3);
    assert_eq!(lab.release_and_queue(&next, Some(&third)), Ok(RELEASED));
    lab.assert_held(&[&b]);
    lab.assert_queue(&[&third]);
    lab.assert_messages(&inbox, &[grant(&b, 0)]);
    assert!(lab.ttl(PERMITS) > 0);
}
