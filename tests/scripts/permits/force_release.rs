//! `permit_force_release`: an operator takes holds away.

use super::lab::{PERMITS, Permits, writer};
use crate::lab::{Acquired as Asked, Around, Lab, NOT_HELD, attempt, grant};
use crate::refusals::Refusal;

#[test]
fn those_that_are_named_are_taken_and_told() {
    let mut lab = Permits::semaphore(6);
    let (a, b, c) = (attempt(1, 1).units(2), attempt(1, 2), attempt(2, 1).units(3));
    lab.hold(&[&a, &b, &c]);
    let inboxes = [1, 2].map(|client| lab.listen(client));
    let stranger = attempt(3, 1);
    assert_eq!(lab.twice(0, |lab| lab.force_release(&[&a, &stranger, &b])), ((2, 0), (0, 0)));
    lab.assert_held(&[&c]);
    assert_eq!(lab.raw_used(), 3);
    lab.assert_messages(&inboxes[0], &[format!("revoked {}", a.id), format!("revoked {}", b.id)]);
    lab.assert_messages(&inboxes[1], &[]);
    assert_eq!((lab.release(&a), lab.renew_one(&b)), (NOT_HELD, 0));
    assert_eq!(lab.force_release(&[&c]), (1, 0));
    assert_eq!(lab.server.keys(), [""; 0]);
    assert_eq!(lab.force_release(&[&c]), (0, 0));
    assert_eq!(lab.force_release(&[]), (0, 0));
    assert_eq!(lab.server.keys(), [""; 0]);
}

/// The units of all that are taken go to those who wait, in their order.
#[test]
fn what_is_taken_is_handed_on() {
    let mut lab = Permits::semaphore(5);
    let (a, b, c) = (attempt(1, 1).units(2), attempt(2, 1).units(2), attempt(3, 1));
    let (large, small) = (attempt(4, 1).units(4), attempt(5, 1));
    lab.hold(&[&a, &b, &c]);
    lab.queue(&[&large, &small]);
    let inboxes = [4, 5].map(|client| lab.listen(client));
    assert_eq!(lab.force_release(&[&c]), (1, 0));
    lab.assert_queue(&[&large, &small]);
    assert_eq!(lab.force_release(&[&a, &b]), (2, 0));
    lab.assert_held(&[&large, &small]);
    lab.assert_messages(&inboxes[0], &[grant(&large, 0)]);
    lab.assert_messages(&inboxes[1], &[grant(&small, 0)]);
    // The whole capacity, so that nothing is left in between.
    assert_eq!(lab.force_release(&[&small, &large]), (2, 0));
    assert_eq!(lab.server.keys(), [""; 0]);
}

#[test]
fn a_sole_hold_is_taken() {
    let (mut lab, a) = (Permits::semaphore(5), attempt(1, 1).units(4));
    lab.hold(&[&a]);
    assert_eq!(lab.server.keys(), [lab.keys[PERMITS].clone()]);
    assert_eq!(lab.force_release(&[&a]), (1, 0));
    assert_eq!(lab.server.keys(), [""; 0]);
}

/// The token is between those of the writers, and readers that are taken have none.
#[test]
fn a_writer_is_fenced_out() {
    let mut lab = Permits::read_write();
    let (a, b) = (writer(1, 1), writer(2, 1));
    let Asked::Granted(old) = lab.acquire(&a) else { panic!() };
    lab.queue(&[&b]);
    lab.listen(2);
    let (taken, token) = lab.force_release(&[&a]);
    assert!(taken == 1 && token > old, "{token} after {old}");
    lab.assert_held(&[&b]);
    let next = lab.inspect().holds[0].2;
    assert!(next > token, "{next} after {token}");
    lab.release(&b);
    let readers = [attempt(1, 2), attempt(2, 2), attempt(3, 2)];
    lab.hold(&readers.iter().collect::<Vec<_>>());
    lab.queue(&[&writer(4, 1)]);
    lab.listen(4);
    assert_eq!(lab.force_release(&[&readers[0], &readers[1]]), (2, 0));
    lab.assert_held(&[&readers[2]]);
    assert_eq!(lab.force_release(&[&readers[2]]), (1, 0));
    lab.assert_held(&[&writer(4, 1)]);
}

/// A hold can outlive its counter.
#[test]
fn a_writer_whose_counter_is_lost_is_fenced_out() {
    let mut lab = Permits::read_write();
    let (fence, ahead) = (lab.keys[4].clone(), lab.clock().us + 1_000_000_000);
    lab.raw(&["SET", &fence, &ahead.to_string(), "PX", "100000"]);
    let Asked::Granted(old) = lab.acquire(&writer(1, 1)) else { panic!() };
    lab.raw(&["DEL", &fence]);
    let (1, token) = lab.force_release(&[&writer(1, 1)]) else { panic!() };
    assert!(token > old, "{token} after {old}");
    let Asked::Granted(next) = lab.acquire(&writer(2, 1)) else { panic!() };
    assert!(next > token);
}

#[test]
fn a_hold_whose_lease_is_over_is_not_taken() {
    let (mut lab, a, b) = (Permits::semaphore(5), attempt(1, 1), attempt(2, 1));
    lab.hold(&[&a, &b]);
    let inbox = lab.listen(1);
    lab.expire_hold(&a);
    assert_eq!(lab.force_release(&[&a, &b]), (1, 0));
    lab.assert_messages(&inbox, &[]);
    assert_eq!(lab.server.keys(), [""; 0]);
}

#[test]
fn a_server_that_takes_no_writes_keeps_the_holds() {
    for refusal in Refusal::ALL {
        let mut lab = Permits::read_write_on(Lab::on(Refusal::server()));
        if !refusal.applies(&lab) {
            continue;
        }
        let (a, b) = (attempt(1, 1), attempt(2, 1));
        lab.hold(&[&a, &b]);
        refusal.begin(&mut lab);
        assert_eq!(lab.try_force_release(&[&a]), Err(refusal.code()));
        assert_eq!(lab.try_force_release(&[&attempt(9, 9)]), Err(refusal.code()));
        lab.assert_held(&[&a, &b]);
        refusal.end(&mut lab);
        assert_eq!(lab.force_release(&[&a]), (1, 0));
    }
}
