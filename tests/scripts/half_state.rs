//! A script that fails has changed nothing: wrong-typed keys, a server out of memory, a user without permissions.

use crate::lab::{Acquired, Around, Attempt, CANCELLED, Forced, Lab, RELEASED, State, attempt};

const LOCK: usize = 0;
const QUEUE: usize = 1;
const TICKETS: usize = 2;
const FENCE: usize = 3;

fn wrong(lab: &mut Lab, key: usize) {
    let key = lab.keys[key].clone();
    lab.set_wrong(&key);
}

/// Held by the first, waited for by the second, who listens.
fn contended() -> (Lab, Attempt, Attempt) {
    let (mut lab, a, _) = Lab::held();
    let b = attempt(2, 1);
    lab.acquire(&b);
    lab.listen(2);
    (lab, a, b)
}

#[track_caller]
fn assert_all_refuse(lab: &mut Lab, a: &Attempt, b: &Attempt) {
    for mode in ["try", "wait"] {
        lab.assert_refused("WRONGTYPE", |lab| lab.acquire_as(mode, &attempt(3, 1)));
        lab.assert_refused("WRONGTYPE", |lab| lab.acquire_as(mode, b));
    }
    lab.assert_refused("WRONGTYPE", |lab| lab.release_and_queue(a, None));
    lab.assert_refused("WRONGTYPE", |lab| lab.release_and_queue(a, Some(&attempt(1, 2))));
    for ticket in [a.ticket(), b.ticket(), "x".to_owned()] {
        lab.assert_refused("WRONGTYPE", |lab| lab.cancel_ticket(&ticket, false));
    }
    lab.assert_refused("WRONGTYPE", |lab| lab.try_heartbeat(&[b]));
    lab.assert_refused("WRONGTYPE", |lab| lab.try_heartbeat(&[a, b]));
    lab.assert_refused("WRONGTYPE", |lab| lab.try_force_release(a));
}

#[test]
fn a_wrong_lock() {
    let (mut lab, a, b) = contended();
    wrong(&mut lab, LOCK);
    assert_all_refuse(&mut lab, &a, &b);
    lab.assert_refused("WRONGTYPE", Lab::try_inspect);
    assert_eq!(lab.renew_one(&a), -1);
}

/// The tickets that are left would be deleted.
#[test]
fn a_wrong_lock_with_half_a_queue() {
    let (mut lab, a, b) = contended();
    lab.checked = false;
    wrong(&mut lab, LOCK);
    lab.del(QUEUE);
    assert_all_refuse(&mut lab, &a, &b);
}

#[test]
fn a_wrong_queue() {
    let (mut lab, a, b) = contended();
    wrong(&mut lab, QUEUE);
    assert_all_refuse(&mut lab, &a, &b);
    lab.assert_holder(&a);
    assert_eq!(lab.renew_one(&a), 1);
    lab.expire_hold();
    assert_all_refuse(&mut lab, &a, &b);
}

#[test]
fn wrong_tickets() {
    let (mut lab, a, b) = contended();
    wrong(&mut lab, TICKETS);
    assert_all_refuse(&mut lab, &a, &b);
    lab.assert_refused("WRONGTYPE", Lab::try_inspect);
    lab.expire_hold();
    assert_all_refuse(&mut lab, &a, &b);
}

#[test]
fn a_wrong_fence_and_waiters() {
    let (mut lab, a, b) = contended();
    wrong(&mut lab, FENCE);
    assert_all_refuse(&mut lab, &a, &b);
    lab.assert_holder(&a);
    lab.expire_hold();
    assert_all_refuse(&mut lab, &a, &b);
    lab.assert_free();
}

#[test]
fn a_wrong_fence_without_waiters() {
    let mut lab = Lab::new();
    wrong(&mut lab, FENCE);
    for mode in ["try", "wait"] {
        lab.assert_refused("WRONGTYPE", |lab| lab.acquire_as(mode, &attempt(1, 1)));
    }
    let (mut lab, a, _) = Lab::held();
    wrong(&mut lab, FENCE);
    lab.assert_refused("WRONGTYPE", |lab| lab.try_force_release(&a));
    // Scripts that need no token work.
    assert_eq!(lab.renew_one(&a), 1);
    assert_eq!(lab.release(&a), RELEASED);
}

#[test]
fn only_the_queue_or_the_tickets_are_there_and_wrong() {
    for key in [QUEUE, TICKETS] {
        let mut lab = Lab::new();
        wrong(&mut lab, key);
        for mode in ["try", "wait"] {
            lab.assert_refused("WRONGTYPE", |lab| lab.acquire_as(mode, &attempt(1, 1)));
        }
        lab.assert_refused("WRONGTYPE", |lab| lab.try_heartbeat(&[&attempt(1, 1)]));
        lab.assert_refused("WRONGTYPE", |lab| lab.cancel_ticket(&attempt(1, 1).ticket(), false));
    }
}

/// A lease that `PEXPIRE` refuses must not leave a lock for ever.
#[test]
fn a_lease_out_of_range_leaves_no_lock() {
    for mode in ["try", "wait"] {
        let mut lab = Lab::new();
        assert!(lab.acquire_as(mode, &attempt(1, 1).lease(u64::MAX)).is_err());
        assert_eq!(lab.server.ttl_ms(&lab.keys[LOCK]), -2);
        lab.acquire_as(mode, &attempt(1, 2)).unwrap().token();
    }
}

#[test]
fn out_of_memory() {
    let (mut lab, a, b) = contended();
    let was = lab.raw(&["CONFIG", "GET", "maxmemory"]);
    lab.raw(&["CONFIG", "SET", "maxmemory", "1"]);
    lab.assert_refused("OOM", |lab| lab.acquire_as("wait", &attempt(3, 1)));
    assert_eq!(lab.renew_one(&a), 1);
    // Scripts that free memory work, and hand the lock over.
    assert_eq!(lab.release(&a), RELEASED);
    lab.assert_holder(&b);
    assert_eq!(lab.release(&b), RELEASED);
    lab.assert_refused("OOM", |lab| lab.acquire_as("try", &attempt(3, 2)));
    assert_ne!(was, lab.raw(&["CONFIG", "GET", "maxmemory"]));
    lab.raw(&["CONFIG", "SET", "maxmemory", "0"]);
    lab.acquire(&attempt(3, 3)).token();
}

#[test]
fn a_full_server_lets_an_operator_take_a_lock() {
    let (mut lab, a, b) = contended();
    let stored = |lab: &mut Lab, of: &Attempt| lab.stored_token(of).unwrap().parse::<u64>().unwrap();
    let old = stored(&mut lab, &a);
    lab.raw(&["CONFIG", "SET", "maxmemory", "1"]);
    let Forced::Released { token, more: false } = lab.force_release(&a) else { panic!() };
    lab.assert_holder(&b);
    let next = stored(&mut lab, &b);
    assert!(old < token && token < next, "{old} {token} {next}");
}

/// `HSET` allowed, `PEXPIRE` not: no lock for ever.
#[test]
fn a_user_who_may_not_set_a_ttl() {
    let mut lab = Lab::new();
    lab.raw(&["ACL", "SETUSER", "default", "-pexpire"]);
    for mode in ["try", "wait"] {
        assert!(lab.acquire_as(mode, &attempt(1, 1)).is_err());
        assert_eq!(lab.server.ttl_ms(&lab.keys[LOCK]), -2, "{mode}");
    }
    lab.raw(&["ACL", "SETUSER", "default", "+@all"]);
    lab.acquire(&attempt(1, 2)).token();
}

/// A waiter that cannot be told must not hold the lock without knowing.
#[test]
fn a_user_who_may_not_publish() {
    for counts_everyone in [true, false] {
        let (mut lab, a, b) = contended();
        lab.counts_everyone = counts_everyone;
        lab.raw(&["ACL", "SETUSER", "default", "-publish"]);
        assert_eq!(lab.release(&a), RELEASED);
        lab.assert_free();
        lab.assert_queue(&[&b]);
        assert!(matches!(lab.state(&b), State::Granted(_)), "its own heartbeat tells it");
        let (c, d) = (attempt(3, 1), attempt(4, 1));
        lab.acquire(&c).queued();
        lab.acquire(&d).queued();
        assert_eq!(lab.cancel(&c), CANCELLED);
        // An operator gets an error if the holder cannot be notified.
        assert!(lab.try_force_release(&b).is_err());
        lab.assert_holder(&b);
        assert_eq!(lab.release(&b), RELEASED);
        assert!(matches!(lab.acquire(&d), Acquired::Granted(_)));
    }
}

/// The same for one who may not ask whether the waiter listens.
#[test]
fn a_user_who_may_not_ask_who_listens() {
    let (mut lab, a, b) = contended();
    lab.raw(&["ACL", "SETUSER", "default", "-pubsub"]);
    assert_eq!(lab.release(&a), RELEASED);
    lab.assert_free();
    lab.assert_queue(&[&b]);
    assert!(matches!(lab.state(&b), State::Granted(_)), "its own heartbeat tells it");
    // A client's check at connect finds the same error.
    assert!(lab.try_force_release(&b).is_err());
    lab.assert_holder(&b);
    // Without counting subscribers, as in a cluster.
    let c = attempt(3, 1);
    lab.acquire(&c).queued();
    lab.counts_everyone = false;
    assert_eq!(lab.release(&b), RELEASED);
    lab.assert_holder(&c);
}
