//! `permit_change`: downgrade and upgrade.

use super::lab::{Changed, FENCE, LEASES, PERMITS, Permits, SPAN, writer};
use crate::lab::{Acquired, Around, LEASE, NOT_HELD, RELEASED, State, attempt, grant};

const GONE: Changed = Changed::NotHeld { more: false };
const REFUSED: Changed = Changed::Busy { more: false };

/// The server knows the first token of a budget. The guard may have a later one, or one of the budget before.
#[test]
fn a_downgrade_keeps_the_token_of_the_guard() {
    for next_budget in [false, true] {
        let (mut lab, w, r) = (Permits::read_write(), writer(1, 1), attempt(1, 2));
        let of_guard = lab.acquire(&w).token() + 5;
        if next_budget {
            assert!(lab.ask_ahead(&w, of_guard - 5, 32, &writer(1, 3)).token() > of_guard);
        }
        let (first, second) = lab.twice(5_000, |lab| lab.change_keeping(&w, &r, of_guard).token());
        assert_eq!((first, second, lab.token_of(&r)), (of_guard, of_guard, of_guard));
        // An upgrade gets a new token all the same, also if the clock stands before.
        let (fence, far) = (lab.keys[FENCE].clone(), of_guard + (1 << 40));
        lab.raw(&["SET", &fence, &far.to_string(), "PX", "100000"]);
        let last = lab.change_keeping(&r, &writer(1, 4), of_guard).token();
        assert_eq!(last, far + 1);
        // Without room, the reader keeps its own.
        let [a, b] = [attempt(2, 1), attempt(2, 2)];
        assert_eq!(lab.change_keeping(&writer(1, 4), &a, last).token(), last);
        lab.hold(&[&b]);
        let busy = lab.change_keeping(&a, &writer(2, 3), last);
        assert_eq!((busy, lab.token_of(&attempt(2, 3))), (Changed::Busy { more: false }, last));
    }
}

#[test]
fn a_downgrade_keeps_the_token_and_wakes_the_readers() {
    let mut lab = Permits::read_write();
    let (w, r) = (writer(1, 1), attempt(1, 2));
    let token = lab.acquire(&w).token();
    let (b, c, next, late) = (attempt(2, 1), attempt(3, 1), writer(4, 1), attempt(2, 2));
    lab.queue(&[&b, &c, &next, &late]);
    let inboxes = [2, 3, 4].map(|client| lab.listen(client));
    assert_eq!(lab.change(&w, &r), Changed::Changed { token, more: false });
    lab.assert_held(&[&r, &b, &c]);
    assert_eq!(lab.token_of(&r), token);
    let last = token + SPAN - 1;
    lab.assert_messages(&inboxes[0], &[grant(&b, last)]);
    lab.assert_messages(&inboxes[1], &[grant(&c, last)]);
    lab.assert_messages(&inboxes[2], &[]);
    assert_eq!(lab.release(&w), NOT_HELD, "the old hold is over");
    assert_eq!((lab.renew_one(&w), lab.renew_one(&r)), (0, 1));
}

#[test]
fn an_upgrade_of_the_sole_reader_gets_a_new_token() {
    let mut lab = Permits::read_write();
    let (r, w) = (attempt(1, 1), writer(1, 2));
    let token = lab.acquire(&r).token();
    let new = lab.change(&r, &w).token();
    assert!(new > token);
    lab.assert_held(&[&w]);
    lab.try_acquire(&attempt(2, 1)).busy();
    assert_eq!(lab.release(&w), RELEASED);
    assert_eq!(lab.acquire(&attempt(2, 2)).token(), new);
}

/// Its token is larger than all that were reserved with the old one, even if the counter is lost and the clock stands
/// before them.
#[test]
fn an_upgrade_after_the_counter_was_lost() {
    let mut lab = Permits::read_write();
    let (fence, ahead) = (lab.keys[FENCE].clone(), lab.clock().us + 1_000_000_000);
    lab.raw(&["SET", &fence, &ahead.to_string(), "PX", "100000"]);
    let r = attempt(1, 1);
    assert_eq!(lab.acquire(&r).token(), ahead);
    lab.del(FENCE);
    assert!(lab.change(&r, &writer(1, 2)).token() >= ahead + SPAN);
}

#[test]
fn an_upgrade_is_busy_while_anybody_else_reads_and_never_waits() {
    let mut lab = Permits::read_write();
    let (r, other, w) = (attempt(1, 1), attempt(2, 1), writer(1, 2));
    lab.hold(&[&r, &other]);
    let token = lab.token_of(&r);
    assert_eq!(lab.change(&r, &w), REFUSED);
    // The holder keeps reading, under the new attempt id.
    let kept = attempt(1, 2);
    lab.assert_held(&[&kept, &other]);
    assert_eq!(lab.token_of(&kept), token);
    assert_eq!((lab.renew_one(&r), lab.renew_one(&kept)), (0, 1));
    assert_eq!(lab.release(&r), NOT_HELD, "the old hold is over");
    // A reader whose lease is over no longer counts.
    lab.expire_hold(&other);
    let next = writer(1, 3);
    lab.change(&kept, &next).token();
    lab.assert_held(&[&next]);
}

/// It may have reaped a hold that blocked others.
#[test]
fn a_refused_change_wakes_those_who_fit() {
    let mut lab = Permits::semaphore(3);
    let (a, b, c, next) = (attempt(1, 1), attempt(2, 1), attempt(3, 1), attempt(4, 1));
    lab.hold(&[&a, &b, &c]);
    lab.queue(&[&next]);
    let _inbox = lab.listen(4);
    lab.expire_hold(&c);
    assert_eq!(lab.change(&a, &attempt(1, 2).units(3)), REFUSED);
    lab.assert_held(&[&attempt(1, 2), &b, &next]);
}

/// It holds already: waiters could not get in before it anyway.
#[test]
fn an_upgrade_does_not_wait_for_those_who_wait() {
    let mut lab = Permits::read_write();
    let (r, w) = (attempt(1, 1), writer(1, 2));
    lab.hold(&[&r]);
    lab.queue(&[&writer(2, 1), &attempt(3, 1)]);
    lab.change(&r, &w).token();
    lab.assert_held(&[&w]);
    lab.assert_queue(&[&writer(2, 1), &attempt(3, 1)]);
}

#[test]
fn a_second_copy_reports_what_the_first_one_did() {
    for (old, new) in [(writer(1, 1), attempt(1, 2)), (attempt(1, 1), writer(1, 2))] {
        let mut lab = Permits::read_write();
        lab.hold(&[&old]);
        let (first, second) = lab.twice(5_000, |lab| lab.change(&old, &new));
        assert_eq!(first, second);
        lab.assert_held(&[&new]);
        let leases = lab.keys[LEASES].clone();
        let soon = (lab.now() + 1_000).to_string();
        lab.raw(&["ZADD", &leases, "XX", &soon, &new.id]);
        lab.change(&old, &new).token();
        assert!(lab.inspect().holds[0].3 > LEASE as i64 / 2, "with its full lease");
    }
}

/// It does not matter that the other readers have gone when the copy comes.
#[test]
fn a_late_copy_of_a_refused_upgrade_changes_nothing() {
    let mut lab = Permits::read_write();
    let (r, other, w, kept) = (attempt(1, 1), attempt(2, 1), writer(1, 2), attempt(1, 2));
    lab.hold(&[&r, &other]);
    let (first, second) = lab.twice(5_000, |lab| lab.change(&r, &w));
    assert_eq!((first, second), (REFUSED, REFUSED));
    let token = lab.token_of(&kept);
    lab.release(&other);
    let (third, fourth) = lab.twice(5_000, |lab| lab.change(&r, &w));
    assert_eq!((third, fourth), (REFUSED, REFUSED));
    lab.assert_held(&[&kept]);
    assert_eq!(lab.token_of(&kept), token);
    // Nor after the reader has become a writer in another way, or is gone.
    let next = writer(1, 3);
    lab.change(&kept, &next).token();
    assert_eq!(lab.twice(0, |lab| lab.change(&r, &w)), (GONE, GONE));
    lab.assert_held(&[&next]);
    assert_eq!(lab.release(&next), RELEASED);
    assert_eq!(lab.twice(0, |lab| lab.change(&r, &w)), (GONE, GONE));
    lab.assert_held(&[]);
}

#[test]
fn a_request_that_comes_too_late_is_only_told_what_an_earlier_copy_did() {
    let mut lab = Permits::read_write();
    let (r, other, w) = (attempt(1, 1), attempt(2, 1), writer(1, 2));
    let late = writer(1, 2).not_after(lab.past());
    lab.hold(&[&r]);
    assert_eq!(lab.twice(0, |lab| lab.change(&r, &late)), (Changed::Stale, Changed::Stale));
    lab.assert_held(&[&r]);
    lab.change(&r, &w).token();
    lab.change(&r, &late).token();
    lab.release(&w);
    assert_eq!(lab.change(&r, &late), GONE);
    lab.hold(&[&r, &other]);
    assert_eq!(lab.change(&r, &w), REFUSED);
    assert_eq!(lab.change(&r, &late), REFUSED);
}

/// Downgrade, upgrade, then the copy of the downgrade: no reader beside the writer.
#[test]
fn late_copies_change_nothing() {
    let mut lab = Permits::read_write();
    let (first, second, third) = (writer(1, 1), attempt(1, 2), writer(1, 3));
    lab.hold(&[&first]);
    lab.change(&first, &second).token();
    lab.change(&second, &third).token();
    for (old, new) in [(&first, &second), (&second, &attempt(1, 2))] {
        assert_eq!(lab.twice(0, |lab| lab.change(old, new)), (GONE, GONE));
    }
    lab.assert_held(&[&third]);
    lab.queue(&[&attempt(2, 1)]);
    assert_eq!(lab.change(&first, &second), GONE);
    lab.assert_held(&[&third]);
    lab.cancel(&attempt(2, 1));
    lab.release(&third);
    assert_eq!(lab.twice(0, |lab| lab.change(&second, &third)), (GONE, GONE));
    lab.assert_held(&[]);
}

#[test]
fn a_change_without_a_hold_changes_nothing() {
    let mut lab = Permits::read_write();
    assert_eq!(lab.change(&attempt(1, 1), &writer(1, 2)), GONE);
    assert_eq!(lab.server.keys(), [""; 0]);
    let w = writer(1, 1);
    lab.hold(&[&w]);
    assert_eq!(lab.change(&attempt(2, 1), &attempt(2, 2)), GONE);
    lab.queue(&[&attempt(3, 1)]);
    lab.expire_hold(&w);
    lab.listen(3);
    assert_eq!(lab.change(&w, &attempt(1, 2)), GONE, "its lease is over");
    lab.assert_held(&[&attempt(3, 1)]);
}

#[test]
fn the_new_hold_has_the_lease_that_was_asked_for() {
    let mut lab = Permits::read_write();
    let (w, r) = (writer(1, 1).lease(20_000), attempt(1, 2).lease(90_000));
    lab.hold(&[&w]);
    lab.change(&w, &r).token();
    assert!(lab.inspect().holds[0].3 > 80_000);
    assert!(lab.ttl(LEASES) > 80_000);
    assert!(matches!(lab.acquire(&r), Acquired::Granted(_)));
    assert!(matches!(lab.state(&r), State::Granted(_)));
    // A refused one, too.
    lab.hold(&[&attempt(2, 1)]);
    assert_eq!(lab.change(&r, &writer(1, 3).lease(300_000)), REFUSED);
    let kept = attempt(1, 3);
    let left = |lab: &mut Permits| lab.inspect().holds.into_iter().find(|hold| hold.0 == kept.id).unwrap().3;
    assert!(left(&mut lab) > 200_000);
    assert!(lab.ttl(LEASES) > 200_000 && lab.ttl(PERMITS) > 200_000);
    // A repeated request gets the same answer.
    let (leases, soon) = (lab.keys[LEASES].clone(), (lab.now() + 1_000).to_string());
    lab.raw(&["ZADD", &leases, "XX", &soon, &kept.id]);
    assert_eq!(lab.change(&r, &writer(1, 3).lease(300_000)), REFUSED);
    assert!(left(&mut lab) > 200_000);
}
