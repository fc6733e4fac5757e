//! `lock_renew`: many holds at once.

use crate::lab::{Forced, Lab, State, attempt, keys_of};

#[test]
fn three_hundred_holds_of_which_three_are_not() {
    let mut lab = Lab::new();
    lab.checked = false;
    let names: Vec<_> = (0..300).map(|i| format!("n{i}")).collect();
    let mine = attempt(1, 1).lease(10_000);
    for (i, name) in names.iter().enumerate() {
        lab.keys = keys_of(name);
        match i {
            100 => lab.set_wrong(&keys_of(name)[0]),
            200 => drop(lab.acquire(&attempt(2, 1).lease(10_000)).token()),
            250 => {}
            _ => drop(lab.acquire(&mine).token()),
        }
    }
    lab.checked = true;
    let locks: Vec<_> = names.iter().map(|name| keys_of(name)[0].clone()).collect();
    let holds: Vec<_> = locks.iter().map(|lock| (lock.as_str(), mine.id.as_str(), 60_000)).collect();
    let expected: Vec<i64> =
        (0..300).map(|i| [(100, -1), (200, 0), (250, 0)].iter().find(|e| e.0 == i).map_or(1, |e| e.1)).collect();
    assert_eq!(lab.renew(&holds), expected);
    for (i, lock) in locks.iter().enumerate() {
        let ttl = lab.server.ttl_ms(lock);
        match i {
            100 => assert_eq!(ttl, -1),
            200 => assert!(ttl <= 10_000),
            250 => assert_eq!(ttl, -2, "a renewal creates nothing"),
            _ => assert!(ttl > 30_000, "{lock} {ttl}"),
        }
    }
}

/// A hold that was granted once more under the same attempt id has another token.
#[test]
fn a_renewal_reports_the_token_of_the_hold() {
    let (mut lab, a, token) = Lab::held();
    assert_eq!(lab.stored_token(&a), Ok(token.to_string()));
    assert_eq!(lab.stored_token(&a.clone().lease(0)), Ok(token.to_string()), "only a look");
    assert_eq!(lab.stored_token(&attempt(2, 1)), Err(0));
    lab.release(&a);
    let again = lab.acquire(&a).token();
    assert!(again > token);
    assert_eq!(lab.stored_token(&a), Ok(again.to_string()));
}

#[test]
fn a_lease_of_zero_only_looks() {
    let (mut lab, a, _) = Lab::held();
    let before = lab.dump();
    assert_eq!(lab.renew_one(&a.clone().lease(0)), 1);
    assert_eq!(lab.renew_one(&attempt(2, 1).lease(0)), 0);
    before.assert_same(&lab.dump(), 0);
    lab.release(&a);
    assert_eq!(lab.renew_one(&a.lease(0)), 0);
}

/// A late copy of an earlier renewal, heartbeat or request must not undo an extension.
#[test]
fn nothing_shortens_a_lease_that_was_extended() {
    let (mut lab, a, token) = Lab::held();
    assert_eq!(lab.renew_one(&a.clone().lease(90_000)), 1);
    assert_eq!(lab.renew_one(&a.clone().lease(20_000)), 1);
    assert!(lab.lock_ttl() > 80_000);
    assert_eq!(lab.acquire(&a.clone().lease(20_000)).token(), token);
    assert!(lab.lock_ttl() > 80_000);
    lab.heartbeat(&[&a.clone().lease(20_000)]);
    assert!(lab.lock_ttl() > 80_000);
    // A renewal with the same lease starts the lease again.
    assert_eq!(lab.renew_one(&a.lease(90_000)), 1);
    assert!(lab.lock_ttl() > 89_000);
}

/// The clock was set back by an hour since the grant: what is left is a lease and an hour.
#[test]
fn a_lease_that_no_call_has_asked_for_is_shortened_to_the_longest_one() {
    let (mut lab, a, token) = Lab::held();
    let lock = lab.keys[0].clone();
    lab.raw(&["PEXPIRE", &lock, "3630000"]);
    // A shorter lease than the longest: the last renewal before the end of a limited hold, or a late copy.
    assert_eq!(lab.renew_within(&a.clone().lease(20_000), 30_000), 1);
    assert!((25_000..=30_000).contains(&lab.lock_ttl()), "{}", lab.lock_ttl());
    assert_eq!(lab.stored_token(&a.clone().lease(0)), Ok(token.to_string()));
    // What a call has asked for stays, however late the copy is.
    assert_eq!(lab.renew_within(&a.clone().lease(90_000), 90_000), 1);
    assert_eq!(lab.renew_within(&a.clone().lease(20_000), 90_000), 1);
    assert!(lab.lock_ttl() > 80_000);
    // A look changes nothing, and neither does the renewal of another hold.
    assert_eq!(lab.renew_within(&a.clone().lease(0), 30_000), 1);
    assert_eq!(lab.renew_within(&attempt(2, 1), 30_000), 0);
    assert!(lab.lock_ttl() > 80_000);
}

/// An extension is stored, so a late copy of an earlier and shorter one shortens nothing, and one of the same length
/// does.
#[test]
fn an_extension_shortens_to_the_longest_one_unless_a_longer_one_came_before() {
    let (mut lab, a, token) = Lab::held();
    let lock = lab.keys[0].clone();
    lab.raw(&["PEXPIRE", &lock, "3630000"]);
    assert_eq!(lab.extend(&a.clone().lease(40_000), 40_000), 1);
    assert!((35_000..=40_000).contains(&lab.lock_ttl()), "{}", lab.lock_ttl());
    assert_eq!(lab.extend(&a.clone().lease(90_000), 90_000), 1);
    assert!(lab.lock_ttl() > 80_000);
    for late in [Lab::extend, Lab::renew_within] {
        assert_eq!(late(&mut lab, &a.clone().lease(40_000), 40_000), 1);
        assert!(lab.lock_ttl() > 80_000, "{}", lab.lock_ttl());
    }
    lab.raw(&["PEXPIRE", &lock, "3630000"]);
    assert_eq!(lab.extend(&a.clone().lease(40_000), 40_000), 1);
    assert!(lab.lock_ttl() > 3_600_000, "a late copy shortens nothing, whatever it finds");
    assert_eq!(lab.renew_within(&a.clone().lease(1000), 90_000), 1);
    assert!((85_000..=90_000).contains(&lab.lock_ttl()), "{}", lab.lock_ttl());
    // All replies have the token alone.
    assert_eq!(lab.stored_token(&a), Ok(token.to_string()));
    assert_eq!(lab.acquire(&a).token(), token);
    assert_eq!(lab.state(&a), State::Granted(token));
    assert_eq!(lab.inspect().token, token.to_string());
    // The operator's token is larger, also without a counter and with a clock that was set back since.
    lab.raw(&["DEL", &lab.keys[3].clone()]);
    let ahead = token + 3_600_000_000;
    lab.raw(&["HSET", &lock, &a.id, &format!("{ahead} 90000")]);
    assert!(matches!(lab.force_release(&a), Forced::Released { token, .. } if token > ahead));
}

#[test]
fn a_renewal_after_the_release_finds_no_hold_and_creates_nothing() {
    let (mut lab, a, _) = Lab::held();
    lab.release(&a);
    assert_eq!(lab.renew_one(&a), 0);
    assert_eq!(lab.server.keys(), [lab.keys[3].clone()]);
    let b = attempt(2, 1).lease(10_000);
    lab.acquire(&b);
    assert_eq!(lab.renew_one(&a), 0);
    assert!(lab.lock_ttl() <= 10_000, "a renewal does not lengthen the lease of another hold");
}

#[test]
fn a_lease_out_of_range_fails_the_call_and_says_nothing_of_the_hold() {
    let (mut lab, a, _) = Lab::held();
    let lock = lab.keys[0].clone();
    let id = a.id.as_str();
    assert_eq!(lab.try_renew(&[(&lock, id, u64::MAX), (&lock, id, 60_000)]), Err("ERR".to_owned()));
    assert_eq!(lab.renew(&[(&lock, id, 60_000)]), [1]);
    assert!(lab.lock_ttl() > 30_000);
}

#[test]
fn no_holds_no_answers() {
    assert_eq!(Lab::new().renew(&[]), [0; 0]);
}

/// What clients pay for all the time: since Redis 7.0, no command asks what is left of the lease.
#[test]
fn a_renewal_in_time_asks_for_no_lease() {
    let (mut lab, a, _) = Lab::held();
    if lab.server.version().starts_with("redis 6") {
        return;
    }
    lab.checked = false;
    lab.raw(&["PEXPIRE", &lab.keys[0].clone(), "1000"]);
    lab.raw(&["ACL", "SETUSER", "asks-not", "on", "nopass", "~*", "&*", "+@all", "-pttl"]);
    lab.raw(&["AUTH", "asks-not", ""]);
    assert_eq!(lab.renew_one(&a), 1);
    assert!(lab.server.ttl_ms(&lab.keys[0]) > 1000);
}
