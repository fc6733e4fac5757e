//! `permit_limit` and `permit_inspect`.

use super::lab::{Acquired, Inspected, LIMIT, Limited, PERMITS, Permits};
use crate::lab::{Acquired as Granted, NOT_HELD, RELEASED, State, attempt, grant};

const DAY: i64 = 86_400_000;

#[test]
fn a_stored_limit_wins_over_the_call_site() {
    let mut lab = Permits::semaphore(1);
    assert_eq!(lab.set_limit(3), LIMIT);
    assert_eq!(lab.inspect(), Inspected { used: 0, limit: 3, waiters: 0, holds: vec![] });
    let (a, b) = (attempt(1, 1), attempt(2, 1).units(2));
    lab.hold(&[&a, &b]);
    lab.try_acquire(&attempt(3, 1)).busy();
    assert_eq!(lab.acquire_as("try", &attempt(3, 2).units(4)), Ok(Acquired::Over(3)));
    lab.limit = 100;
    lab.try_acquire(&attempt(3, 3)).busy();
}

#[test]
fn a_stored_limit_lives_for_a_day_after_the_last_use() {
    let mut lab = Permits::semaphore(5);
    lab.set_limit(2);
    let key = lab.keys[PERMITS].clone();
    let shorten = |lab: &mut Permits| {
        assert!((DAY - 10_000..=DAY).contains(&lab.ttl(PERMITS)), "{}", lab.ttl(PERMITS));
        lab.raw(&["PEXPIRE", &key, "50000"]);
    };
    shorten(&mut lab);
    lab.set_limit(2);
    shorten(&mut lab);
    let a = attempt(1, 1);
    lab.hold(&[&a]);
    shorten(&mut lab);
    assert_eq!(lab.renew_one(&a), 1);
    shorten(&mut lab);
    lab.hold(&[&attempt(2, 1)]);
    shorten(&mut lab);
    lab.release(&attempt(2, 1));
    shorten(&mut lab);
    assert_eq!(lab.release(&a), RELEASED);
    shorten(&mut lab);
    assert_eq!(lab.inspect().limit, 2);
    // The time to live is never shortened.
    lab.hold(&[&a.lease(3 * DAY as u64)]);
    lab.set_limit(3);
    assert!(lab.ttl(PERMITS) > 2 * DAY);
}

#[test]
fn a_larger_limit_wakes_those_who_fit() {
    let mut lab = Permits::semaphore(1);
    let a = attempt(1, 1);
    lab.hold(&[&a]);
    let waiters = [attempt(2, 1), attempt(2, 2), attempt(2, 3)];
    lab.queue(&waiters.iter().collect::<Vec<_>>());
    let inbox = lab.listen(2);
    assert_eq!(lab.set_limit(3), LIMIT);
    lab.assert_messages(&inbox, &[grant(&waiters[0], 0), grant(&waiters[1], 0)]);
    lab.assert_held(&[&a, &waiters[0], &waiters[1]]);
    lab.assert_queue(&[&waiters[2]]);
}

#[test]
fn a_smaller_limit_drains() {
    let mut lab = Permits::semaphore(4);
    let holders: Vec<_> = (1..=4).map(|n| attempt(1, n)).collect();
    lab.hold(&holders.iter().collect::<Vec<_>>());
    let waiter = attempt(2, 1);
    lab.queue(&[&waiter]);
    lab.listen(2);
    assert_eq!(lab.set_limit(2), LIMIT);
    lab.assert_held(&holders.iter().collect::<Vec<_>>());
    assert_eq!(lab.renew_one(&holders[0]), 1, "what is held stays held");
    for holder in &holders[..2] {
        assert_eq!(lab.release(holder), RELEASED);
        assert_eq!(lab.state(&waiter), State::Waiting);
    }
    assert_eq!(lab.release(&holders[2]), RELEASED);
    lab.assert_held(&[&holders[3], &waiter]);
}

#[test]
fn tickets_that_fit_no_more_are_dropped_and_told_so() {
    let mut lab = Permits::semaphore(5);
    let a = attempt(1, 1).units(5);
    lab.hold(&[&a]);
    let (small, big, deaf, last) =
        (attempt(2, 1).units(2), attempt(2, 2).units(4), attempt(3, 1).units(5), attempt(2, 3));
    lab.queue(&[&small, &big, &deaf, &last]);
    let inbox = lab.listen(2);
    assert_eq!(lab.set_limit(3), LIMIT);
    lab.assert_messages(&inbox, &[format!("gone {}", big.id)]);
    lab.assert_queue(&[&small, &last]);
    assert_eq!(lab.heartbeat(&[&small, &big, &deaf]).states, [State::Waiting, State::Gone, State::Gone]);
    assert_eq!(lab.acquire_as("wait", &big), Ok(Acquired::Over(3)));
    assert_eq!(lab.release(&a), RELEASED);
    lab.assert_held(&[&small, &last]);
}

/// Those that stand further back learn it when they send a heartbeat or resend, or when they come to the head.
#[test]
fn tickets_far_back_that_fit_no_more() {
    let mut lab = Permits::semaphore(5);
    let a = attempt(1, 1).units(5);
    lab.hold(&[&a]);
    lab.checked = false;
    let before: Vec<_> = (1..=256).map(|n| attempt(2, n)).collect();
    lab.queue(&before.iter().collect::<Vec<_>>());
    let big: Vec<_> = (1..=3).map(|n| attempt(3, n).units(5)).collect();
    lab.queue(&big.iter().collect::<Vec<_>>());
    let last = attempt(4, 1);
    lab.queue(&[&last]);
    lab.checked = true;
    let inbox = lab.listen(3);
    assert_eq!(lab.set_limit(4), LIMIT);
    assert_eq!(lab.waiters().len(), 260);
    assert_eq!(lab.state(&big[0]), State::Gone);
    assert_eq!(lab.acquire_as("wait", &big[1]), Ok(Acquired::Over(4)));
    lab.assert_messages(&inbox, &[]);
    assert_eq!(lab.waiters().len(), 258);
    for waiter in &before {
        lab.cancel(waiter);
    }
    lab.listen(4);
    assert_eq!(lab.release(&a), RELEASED);
    lab.assert_messages(&inbox, &[format!("gone {}", big[2].id)]);
    lab.assert_held(&[&last]);
}

/// The stored limit is lost while a ticket asks for more than the call site's own: it would wait for ever at the head.
#[test]
fn a_ticket_beyond_what_is_left_of_the_limit_is_dropped() {
    let mut lab = Permits::semaphore(3);
    lab.set_limit(9);
    let (a, big, small) = (attempt(1, 1).units(9), attempt(2, 1).units(5), attempt(3, 1));
    lab.hold(&[&a]);
    lab.queue(&[&big, &small]);
    lab.listen(3);
    lab.del(PERMITS);
    assert_eq!(lab.state(&big), State::Gone);
    assert_eq!(lab.acquire_as("wait", &big), Ok(Acquired::Over(3)));
    lab.assert_held(&[&small]);
}

#[test]
fn a_copy_that_comes_late_sets_nothing() {
    let mut lab = Permits::semaphore(5);
    let now = lab.now();
    assert_eq!(lab.try_set_limit(2, now + 60_000), Ok(LIMIT));
    assert_eq!(lab.try_set_limit(9, now - 60_000), Ok(Limited::Stale));
    assert_eq!(lab.inspect().limit, 2);
}

#[test]
fn inspecting_changes_nothing_and_shows_the_living() {
    let mut lab = Permits::semaphore(9);
    assert_eq!(lab.inspect(), Inspected { used: 0, limit: 9, waiters: 0, holds: vec![] });
    assert_eq!(lab.server.keys(), [""; 0]);
    let holders = [attempt(1, 1).units(3), attempt(2, 1).units(2), attempt(3, 1).units(4)];
    lab.hold(&holders.iter().collect::<Vec<_>>());
    let waiters = [attempt(4, 1), attempt(5, 1)];
    lab.queue(&waiters.iter().collect::<Vec<_>>());
    lab.expire_hold(&holders[1]);
    lab.expire_ticket(&waiters[0]);
    let before = lab.dump();
    let inspected = lab.inspect();
    let living = lab.ticket(&waiters[1]);
    assert_eq!((lab.listed(100), lab.listed(2)), (vec![living.clone()], vec![living]));
    assert_eq!((lab.listed(1), lab.listed(0)), (vec![], vec![]));
    before.assert_same(&lab.dump(), 0);
    assert_eq!((inspected.used, inspected.limit, inspected.waiters), (7, 9, 1));
    let mut units: Vec<_> = inspected.holds.iter().map(|(_, units, token, _)| (*units, *token)).collect();
    units.sort_unstable();
    assert_eq!(units, [(3, 0), (4, 0)]);
    assert!(inspected.holds.iter().all(|(.., left)| (1..=30_000).contains(left)));
    assert_eq!(lab.release(&holders[1]), NOT_HELD);
    assert!(matches!(lab.acquire(&waiters[1]), Granted::Granted(0)));
}
