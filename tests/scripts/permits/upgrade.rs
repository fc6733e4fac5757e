//! Upgradable readers, and what they need to become the writer: a ticket before all others, and a change of two holds.

use super::lab::{Changed, FENCE, LEASES, PERMITS, Permits, SPAN, rest, upgradable, writer};
use crate::lab::{Around, CANCEL_RELEASED, NOT_HELD, RELEASED, State, attempt, grant};

const GONE: Changed = Changed::NotHeld { more: false };

/// An upgradable reader, and another reader beside it.
fn reading() -> Permits {
    let mut lab = Permits::read_write();
    lab.hold(&[&upgradable(1, 1), &attempt(2, 1)]);
    lab
}

#[test]
fn one_upgradable_reader_beside_plain_ones() {
    let mut lab = reading();
    lab.try_acquire(&upgradable(3, 1)).busy();
    lab.try_acquire(&attempt(4, 1)).granted();
    lab.assert_held(&[&upgradable(1, 1), &attempt(2, 1), &attempt(4, 1)]);
    // Who waits is not passed.
    let mut lab = reading();
    lab.acquire(&upgradable(3, 1)).queued();
    lab.acquire(&attempt(4, 1)).queued();
    lab.assert_queue(&[&upgradable(3, 1), &attempt(4, 1)]);
    lab.listen(3);
    lab.listen(4);
    assert_eq!(lab.release(&upgradable(1, 1)), RELEASED);
    lab.assert_held(&[&attempt(2, 1), &upgradable(3, 1), &attempt(4, 1)]);
    let mut lab = Permits::read_write();
    let written = lab.acquire(&writer(1, 1)).token();
    lab.release(&writer(1, 1));
    assert_eq!(lab.acquire(&upgradable(2, 1)).token(), written + SPAN - 1, "it has the token of a reader");
    lab.try_acquire(&writer(3, 1)).busy();
}

#[test]
fn the_rest_goes_before_all_who_wait() {
    let mut lab = reading();
    let (w, late) = (writer(3, 1), attempt(4, 1));
    lab.queue(&[&w, &late]);
    let (first, second) = lab.twice(5_000, |lab| lab.acquire(&rest(1, 2)));
    assert_eq!(std::mem::discriminant(&first), std::mem::discriminant(&second));
    lab.assert_queue(&[&rest(1, 2), &w, &late]);
    assert_eq!(lab.heartbeat(&[&rest(1, 2)]).states, [State::Waiting]);
    let inboxes = [1, 3, 4].map(|client| lab.listen(client));
    let token = lab.token_of(&upgradable(1, 1));
    assert_eq!(lab.release(&attempt(2, 1)), RELEASED);
    lab.assert_held(&[&upgradable(1, 1), &rest(1, 2)]);
    lab.assert_messages(&inboxes[0], &[grant(&rest(1, 2), token)]);
    let new = lab.change_both(&upgradable(1, 1), &rest(1, 2), &writer(1, 3)).token();
    assert!(new > token);
    lab.assert_held(&[&writer(1, 3)]);
    assert_eq!((lab.release(&upgradable(1, 1)), lab.release(&rest(1, 2))), (NOT_HELD, NOT_HELD));
    lab.assert_queue(&[&w, &late]);
    assert_eq!(lab.release(&writer(1, 3)), RELEASED);
    lab.assert_held(&[&w]);
    lab.assert_messages(&inboxes[2], &[]);
}

/// Without a queue before it, and with one that was lost since.
#[test]
fn the_rest_alone_in_the_queue() {
    let mut lab = reading();
    lab.acquire(&rest(1, 2)).queued();
    lab.assert_queue(&[&rest(1, 2)]);
    assert_eq!(lab.cancel(&rest(1, 2)), crate::lab::CANCELLED);
    lab.assert_queue(&[]);
    // The last reader has gone before it asks.
    lab.release(&attempt(2, 1));
    lab.acquire(&rest(1, 3)).granted();
    assert_eq!(lab.cancel(&rest(1, 3)), CANCEL_RELEASED);
    lab.assert_held(&[&upgradable(1, 1)]);
}

#[test]
fn a_second_copy_of_a_change_of_two_changes_nothing() {
    let mut lab = Permits::read_write();
    let (u, r, w) = (upgradable(1, 1), rest(1, 2), writer(1, 3));
    lab.hold(&[&u, &r]);
    let (first, second) = lab.twice(5_000, |lab| lab.change_both(&u, &r, &w));
    assert_eq!(first, second);
    lab.assert_held(&[&w]);
    // The writer is gone when the copy comes.
    lab.release(&w);
    assert_eq!(lab.twice(0, |lab| lab.change_both(&u, &r, &w)), (GONE, GONE));
    lab.assert_held(&[]);
    // Its client has given up, and has cancelled all three.
    lab.hold(&[&u, &r]);
    lab.cancel(&r);
    lab.cancel(&u);
    lab.cancel(&w);
    assert_eq!(lab.change_both(&u, &r, &w), GONE);
    lab.hold(&[&u, &r]);
    assert_eq!(lab.change_both(&u, &r, &w.clone().not_after(1)), Changed::Stale);
    lab.assert_held(&[&u, &r]);
}

/// One of two holds is not enough. The other one ends, so that a late copy finds nothing, and those who wait are
/// served.
#[test]
fn a_change_of_two_of_which_one_is_lost() {
    let (u, r, w, next) = (upgradable(1, 1), rest(1, 2), writer(1, 3), writer(3, 1));
    for lost in [&u, &r] {
        let mut lab = Permits::read_write();
        lab.hold(&[&u, &r]);
        lab.queue(&[&next]);
        let _inbox = lab.listen(3);
        lab.expire_hold(lost);
        assert_eq!(lab.change_both(&u, &r, &w), GONE);
        lab.assert_held(&[&next]);
        lab.assert_queue(&[]);
        assert_eq!(lab.change_both(&u, &r, &w), GONE);
        lab.assert_held(&[&next]);
    }
    let mut lab = Permits::read_write();
    lab.hold(&[&u, &r]);
    lab.expire_hold(&u);
    lab.expire_hold(&r);
    assert_eq!(lab.change_both(&u, &r, &w), GONE);
    assert_eq!((lab.ttl(PERMITS), lab.ttl(LEASES)), (-2, -2));
}

#[test]
fn a_change_of_two_after_the_counter_was_lost() {
    let mut lab = Permits::read_write();
    let (fence, ahead) = (lab.keys[FENCE].clone(), lab.clock().us + 1_000_000_000);
    lab.raw(&["SET", &fence, &ahead.to_string(), "PX", "100000"]);
    lab.hold(&[&upgradable(1, 1), &rest(1, 2)]);
    lab.del(FENCE);
    let token = lab.change_both(&upgradable(1, 1), &rest(1, 2), &writer(1, 3)).token();
    assert!(token >= ahead + SPAN);
}

/// The user may run `LPUSH`, but not the commands after it. No ticket and no key without a TTL remains.
#[test]
fn a_user_who_may_not_finish_a_ticket() {
    for refused in ["-pexpire", "-zadd"] {
        for others in [&[][..], &[&writer(3, 1), &writer(4, 1)]] {
            let mut lab = reading();
            lab.queue(others);
            lab.raw(&["ACL", "SETUSER", "default", refused]);
            let asked = lab.acquire_as("wait", &rest(1, 2));
            lab.raw(&["ACL", "SETUSER", "default", "+@all"]);
            if others.is_empty() || refused == "-zadd" {
                assert_eq!(asked.unwrap_err(), "NOPERM", "{refused}");
                lab.assert_queue(others);
            } else {
                // The keys of the queue have their times.
                asked.unwrap();
                let upgrade = rest(1, 2);
                let first: Vec<_> = [&upgrade].into_iter().chain(others.iter().copied()).collect();
                lab.assert_queue(&first);
            }
        }
    }
}
