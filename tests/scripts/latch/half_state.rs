//! A script that fails has changed nothing: wrong-typed keys, a server out of memory, a user without permissions.

use super::lab::{CALLS, Call, Counted, Deleted, LATCH, Latch, Set, State, TICKETS, TTL, call};
use crate::lab::{Around, Lab, attempt};
use crate::refusals::Refusal;

#[test]
fn a_wrong_key() {
    for key in [LATCH, TICKETS] {
        let mut lab = Latch::of(1);
        let a = attempt(2, 1);
        lab.queue(&[&a]);
        lab.set_wrong(key);
        lab.assert_refused("WRONGTYPE", |lab| lab.try_set(&call(1), 2, TTL));
        lab.assert_refused("WRONGTYPE", |lab| lab.try_count_down(&call(2)));
        lab.assert_refused("WRONGTYPE", |lab| lab.try_wait(&attempt(3, 1)));
        lab.assert_refused("WRONGTYPE", |lab| lab.try_heartbeat(&[&a]));
        lab.assert_refused("WRONGTYPE", |lab| lab.try_delete(&call(3)));
        lab.assert_refused("WRONGTYPE", Latch::try_inspect);
        match key {
            TICKETS => lab.assert_refused("WRONGTYPE", |lab| lab.try_cancel(&a)),
            _ => assert_eq!(lab.try_cancel(&a), Ok((true, false))),
        }
    }
    // Waiting does not depend on the remembered calls.
    let mut lab = Latch::of(1);
    let a = attempt(2, 1);
    lab.set_wrong(CALLS);
    lab.assert_refused("WRONGTYPE", |lab| lab.try_set(&call(1), 2, TTL));
    lab.assert_refused("WRONGTYPE", |lab| lab.try_count_down(&call(2)));
    lab.assert_refused("WRONGTYPE", |lab| lab.try_delete(&call(3)));
    lab.queue(&[&a]);
    assert_eq!(lab.heartbeat(&[&a]), [State::Waiting]);
    assert!(lab.cancel(&a));
}

#[test]
fn a_user_who_may_not_set_a_ttl() {
    let mut lab = Latch::new();
    lab.raw(&["ACL", "SETUSER", "default", "-pexpire"]);
    assert!(lab.try_set(&call(1), 2, TTL).is_err());
    assert!(lab.try_set(&call(1).timeless(), 2, TTL).is_err());
    assert!(lab.try_count_down(&call(2).resent()).is_err());
    assert!(lab.try_delete(&call(3).resent()).is_err());
    assert_eq!(lab.server.keys(), [""; 0]);
    lab.raw(&["ACL", "SETUSER", "default", "+@all"]);
    lab.set(&call(4), 1);
    lab.raw(&["ACL", "SETUSER", "default", "-pexpire"]);
    assert!(lab.try_wait(&attempt(2, 1)).is_err());
    assert_eq!(lab.ttl(TICKETS), -2);
    // A call fails if it cannot be remembered for as long as copies of it may arrive.
    let before = lab.dump();
    assert!(lab.try_count_down(&call(5).known_until(6_000_000_000_000)).is_err());
    assert!(lab.try_delete(&call(5).known_until(6_000_000_000_000)).is_err());
    before.assert_same(&lab.dump(), 0);
    // A latch that was counted down stays open until its time to live ends.
    lab.raw(&["ACL", "SETUSER", "default", "+@all"]);
    assert_eq!(lab.count_down(&call(5)), Counted::Count(0));
    lab.raw(&["ACL", "SETUSER", "default", "-pexpire"]);
    let before = lab.dump();
    assert!(lab.try_set(&call(6), 2, TTL).is_err());
    before.assert_same(&lab.dump(), 0);
}

/// Nor is one known that was not made.
#[test]
fn a_user_who_may_not_change_the_count() {
    let mut lab = Latch::of(2);
    for command in ["hset", "hdel"] {
        lab.raw(&["ACL", "SETUSER", "default", "+@all", &format!("-{command}")]);
        let before = lab.dump();
        match command {
            "hset" => assert!(lab.try_count_down(&call(1)).is_err()),
            _ => assert!(lab.try_delete(&call(1)).is_err()),
        }
        before.assert_same(&lab.dump(), 0);
    }
}

#[test]
fn a_time_to_live_out_of_range_leaves_no_latch() {
    let mut lab = Latch::new();
    assert!(lab.try_set(&call(1), 2, u64::MAX).is_err());
    assert_eq!(lab.server.keys(), [""; 0]);
    let forever = Call { not_after: u64::MAX, known_until: u64::MAX, ..call(2).resent() };
    assert!(lab.try_count_down(&forever).is_err());
    assert_eq!(lab.server.keys(), [""; 0]);
}

#[test]
fn a_user_who_may_not_publish() {
    let mut lab = Latch::of(1);
    let a = attempt(2, 1);
    lab.queue(&[&a]);
    lab.raw(&["ACL", "SETUSER", "default", "-publish"]);
    assert_eq!(lab.count_down(&call(1)), Counted::Count(0));
    assert_eq!(lab.heartbeat(&[&a]), [State::Open], "its own heartbeat tells it");
}

#[test]
fn out_of_memory() {
    let mut lab = Latch::of(1);
    lab.queue(&[&attempt(2, 1)]);
    lab.raw(&["CONFIG", "SET", "maxmemory", "1"]);
    lab.assert_refused("OOM", |lab| lab.try_count_down(&call(1)));
    lab.assert_refused("OOM", |lab| lab.try_wait(&attempt(3, 1)));
    assert_eq!(lab.delete(&call(2)), Deleted::Deleted);
    lab.assert_refused("OOM", |lab| lab.try_set(&call(3), 2, TTL));
    lab.raw(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(lab.set(&call(4), 2), Set::Set);
}

/// A replica that is empty still, or has yet to hear of the latch: nothing that it does not have is believed to be
/// gone.
#[test]
fn a_server_that_takes_no_writes_says_nothing() {
    for refusal in Refusal::ALL {
        for counted in [None, Some(1), Some(0)] {
            let mut lab = Latch::on(Lab::on(Refusal::server()));
            if !refusal.applies(&lab) {
                continue;
            }
            let a = attempt(2, 1);
            if let Some(left) = counted {
                lab.set(&call(99), left + 1);
                lab.queue(&[&a]);
                lab.count_down(&call(1));
            }
            refusal.begin(lab.lab());
            let (code, before) = (&*refusal.code(), lab.dump());
            for resent in [false, true] {
                // Calls 1 and 99 are remembered if there is a latch.
                for n in [1, 2, 99] {
                    let call = Call { resent, ..call(n) };
                    lab.assert_refused(code, |lab| lab.try_count_down(&call));
                    lab.assert_refused(code, |lab| lab.try_set(&call, 1, TTL));
                    lab.assert_refused(code, |lab| lab.try_delete(&call));
                }
            }
            lab.assert_refused(code, |lab| lab.try_wait(&attempt(3, 1)));
            lab.assert_refused(code, |lab| lab.try_heartbeat(&[&a]));
            lab.assert_refused(code, |lab| lab.try_heartbeat(&[&attempt(4, 1)]));
            lab.assert_refused(code, |lab| lab.try_cancel(&a));
            match counted {
                Some(1) => assert_eq!(lab.inspect().count, 1, "what there is may be looked at"),
                _ => lab.assert_refused(code, Latch::try_inspect),
            }
            refusal.end(lab.lab());
            before.assert_same(&lab.dump(), 0);
        }
    }
}
