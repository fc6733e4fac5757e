//! `lock_resume`: every reply, what a second copy does, and the tokens and leases that follow.

use crate::hand_over::{Monitor, assert_written_before_dropped};
use crate::lab::{Lab, NOT_HELD, RELEASED, attempt, grant};
use crate::refusals::Refusal;

fn not_held<T>() -> Result<T, String> {
    Err("NOT_HELD".to_owned())
}

#[test]
fn the_hold_gets_another_owner_a_new_token_and_a_new_lease() {
    let (mut lab, a, old) = Lab::held();
    let b = attempt(2, 1).lease(90_000);
    let token = lab.resume(&a, &b).unwrap();
    assert!(token > old);
    lab.assert_holder(&b);
    let key = lab.keys[0].clone();
    assert!((60_000..=90_000).contains(&lab.server.ttl_ms(&key)));
    // The old owner can do nothing any more.
    assert_eq!((lab.renew_one(&a), lab.release(&a)), (0, NOT_HELD));
    assert_eq!(lab.resume(&a, &attempt(3, 1)), not_held());
    assert_eq!(lab.renew_one(&b), 1);
    assert_eq!(lab.release(&b), RELEASED);
    assert!(lab.acquire(&attempt(3, 2)).token() > token);
}

#[test]
fn a_second_copy_says_the_same_and_starts_the_lease_anew() {
    let (mut lab, a, _) = Lab::held();
    let b = attempt(2, 1);
    let token = lab.resume(&a, &b).unwrap();
    let key = lab.keys[0].clone();
    lab.raw(&["PEXPIRE", &key, "5000"]);
    assert_eq!(lab.resume(&a, &b), Ok(token));
    assert!(lab.server.ttl_ms(&key) > 20_000);
    // Also if it is late: the first one may be known to nobody.
    let late = lab.now() - 1;
    assert_eq!(lab.resume(&a, &b.clone().not_after(late)), Ok(token));
    // An extended lease is not part of the token.
    lab.extend(&b.clone().lease(60_000), 60_000);
    assert_eq!(lab.resume(&a, &b), Ok(token));
    assert!(lab.server.ttl_ms(&key) > 40_000, "a late copy does not shorten it");
}

#[test]
fn a_shorter_lease_is_a_shorter_lease() {
    let (mut lab, a, _) = Lab::held();
    lab.extend(&a.clone().lease(600_000), 600_000);
    lab.resume(&a, &attempt(2, 1).lease(5_000)).unwrap();
    let key = lab.keys[0].clone();
    assert!((1_000..=5_000).contains(&lab.server.ttl_ms(&key)));
}

#[test]
fn what_is_not_held_is_not_resumed() {
    let mut lab = Lab::new();
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    assert_eq!(lab.resume(&a, &b), not_held());
    assert_eq!(lab.server.keys(), [""; 0]);
    lab.acquire(&b).granted();
    assert_eq!(lab.resume(&a, &attempt(3, 1)), not_held());
    lab.assert_holder(&b);
}

#[test]
fn a_late_request_resumes_nothing() {
    let (mut lab, a, _) = Lab::held();
    let late = lab.now() - 1;
    assert_eq!(lab.resume(&a, &attempt(2, 1).not_after(late)), Err("STALE".to_owned()));
    lab.assert_holder(&a);
    lab.resume(&a, &attempt(2, 1).not_after(late + 60_000)).unwrap();
}

/// Its token is larger than all that were reserved with the old one, even if the counter is lost and the clock stands
/// before them.
#[test]
fn tokens_grow_over_those_of_a_whole_budget() {
    let mut lab = Lab::new();
    let (fence, ahead) = (lab.keys[3].clone(), lab.clock().us + 1_000_000_000);
    lab.raw(&["SET", &fence, &ahead.to_string(), "PX", "100000"]);
    let a = attempt(1, 1).span(512);
    let old = lab.acquire(&a).token();
    lab.del(3);
    let token = lab.resume(&a, &attempt(2, 1)).unwrap();
    assert_eq!(token, old + 512);
    lab.release(&attempt(2, 1));
    assert!(lab.acquire(&attempt(3, 1)).token() > token);
}

#[test]
fn who_waits_goes_on_waiting() {
    let (mut lab, a, _) = Lab::held();
    let (b, c) = (attempt(2, 1), attempt(3, 1));
    let inbox = lab.listen(3);
    lab.acquire(&c);
    lab.resume(&a, &b).unwrap();
    lab.assert_holder(&b);
    assert_eq!(lab.read(&inbox), [""; 0]);
    assert_eq!(lab.release(&b), RELEASED);
    let token = lab.inspect().token.parse().unwrap();
    assert_eq!(lab.read(&inbox), [grant(&c, token)]);
}

#[test]
fn a_retained_hold_is_resumed_as_any_other() {
    let mut lab = Lab::new();
    let a = attempt(1, 1).retained();
    lab.acquire(&a).granted();
    let b = attempt(2, 1);
    lab.resume(&a, &b).unwrap();
    lab.assert_holder(&b);
}

/// A cluster that is moving the slot refuses to write to a key that the script has deleted.
#[test]
fn the_new_hold_is_written_before_the_old_one_goes() {
    let (mut lab, a, _) = Lab::held();
    lab.checked = false;
    let (key, mut monitor) = (lab.keys[0].clone(), Monitor::of(&lab));
    lab.resume(&a, &attempt(2, 1)).unwrap();
    assert_written_before_dropped(&monitor.calls(&mut lab, &key), "HSET", "HDEL");
}

#[test]
fn a_refused_request_changes_nothing() {
    for refusal in Refusal::ALL {
        let mut lab = Lab::on(Refusal::server());
        if !refusal.applies(&lab) {
            continue;
        }
        let (a, b) = (attempt(1, 1).patient(), attempt(2, 1).patient());
        lab.acquire(&a).granted();
        refusal.begin(&mut lab);
        // Not "not held", which it has not said.
        for old in [&a, &attempt(9, 9)] {
            assert_eq!(lab.resume(old, &b), Err(refusal.code()), "{refusal:?}");
        }
        refusal.end(&mut lab);
        lab.assert_holder(&a);
        lab.resume(&a, &b).unwrap();
    }
}

#[test]
fn a_wrong_type_and_a_missing_right_leave_the_hold_as_it_is() {
    let (mut lab, a, _) = Lab::held();
    let b = attempt(2, 1);
    let [key, .., fence] = [0, 1, 2, 3].map(|n| lab.keys[n].clone());
    lab.raw(&["DEL", &fence]);
    lab.set_wrong(&fence);
    assert_eq!(lab.resume(&a, &b), Err("WRONGTYPE".to_owned()));
    lab.raw(&["DEL", &fence]);
    lab.checked = false;
    lab.raw(&["ACL", "SETUSER", "default", "-pexpire"]);
    let refused = lab.resume(&a, &b);
    lab.raw(&["ACL", "SETUSER", "default", "+@all"]);
    assert_eq!(refused, Err("NOPERM".to_owned()));
    lab.assert_holder(&a);
    lab.raw(&["DEL", &key]);
    lab.set_wrong(&key);
    assert_eq!(lab.resume(&a, &b), Err("WRONGTYPE".to_owned()));
}
