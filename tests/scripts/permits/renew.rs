//! `permit_renew`: many holds at once.

use bowline::wire;

use super::lab::{LEASES, PERMITS, Permits, writer};
use crate::lab::{PREFIX, Released, State, attempt};

#[test]
fn three_hundred_holds_of_which_four_are_not() {
    let mut lab = Permits::semaphore(1);
    lab.checked = false;
    let mine = attempt(1, 1).lease(10_000);
    let names: Vec<_> = (0..300).map(|i| format!("n{i}")).collect();
    for (i, name) in names.iter().enumerate() {
        lab.rename(name);
        match i {
            50 => lab.set_wrong(PERMITS),
            100 => {
                lab.hold(&[&mine]);
                lab.set_wrong(LEASES);
            }
            200 => lab.hold(&[&attempt(2, 1)]),
            250 => {}
            _ => {
                lab.hold(&[&mine]);
                if i % 2 == 0 {
                    lab.store_in_full();
                }
            }
        }
    }
    let keys: Vec<_> = names.iter().map(|name| wire::Resource::semaphore(PREFIX, name, 1).unwrap().keys()).collect();
    let holds: Vec<_> = keys.iter().map(|keys| (&keys[..], mine.id.as_str(), 60_000)).collect();
    let odd = [(50, -1), (100, -1), (200, 0), (250, 0)];
    let expected: Vec<i64> = (0..300).map(|i| odd.iter().find(|e| e.0 == i).map_or(1, |e| e.1)).collect();
    assert_eq!(lab.renew(&holds), expected);
    for (i, keys) in keys.iter().enumerate() {
        let ttls = [PERMITS, LEASES].map(|key| lab.server.ttl_ms(&keys[key]));
        match i {
            50 => assert_eq!(ttls, [-1, -2]),
            100 => assert!(ttls[0] <= 10_000),
            200 => assert!(ttls.iter().all(|ttl| *ttl <= 30_000)),
            250 => assert_eq!(ttls, [-2, -2], "a renewal creates nothing"),
            _ if i % 2 == 0 => assert!(ttls.iter().all(|ttl| *ttl > 50_000)),
            _ => assert!(ttls[0] > 50_000 && ttls[1] == -2, "a sole hold is stored short, and stays so"),
        }
    }
    lab.rename("n7");
    assert!(lab.inspect().holds[0].3 > 50_000);
}

#[test]
fn a_renewal_reports_the_token_of_the_hold() {
    let mut lab = Permits::read_write();
    let (w, r) = (writer(1, 1), attempt(1, 2));
    let written = lab.acquire(&w).token();
    assert_eq!(lab.stored_token(&w), Ok(written.to_string()));
    assert_eq!(lab.stored_token(&r), Err(0));
    lab.change(&w, &r);
    assert_eq!((lab.stored_token(&w), lab.stored_token(&r)), (Err(0), Ok(written.to_string())));
    let mut lab = Permits::semaphore(1);
    lab.hold(&[&r]);
    assert_eq!(lab.stored_token(&r), Ok("0".to_owned()), "permits cannot fence");
}

#[test]
fn a_lease_of_zero_only_looks() {
    let mut lab = Permits::read_write();
    let a = attempt(1, 1);
    lab.hold(&[&a]);
    let before = lab.dump();
    assert_eq!(lab.renew_one(&a.clone().lease(0)), 1);
    assert_eq!(lab.renew_one(&attempt(2, 1).lease(0)), 0);
    lab.expire_hold(&a);
    assert_eq!(lab.renew_one(&a.clone().lease(0)), 0);
    assert_eq!(lab.renew_one(&a), 0, "a renewal brings nothing back");
    lab.release(&a);
    drop(before);
    assert_eq!(lab.server.keys(), [lab.keys[4].clone()]);
}

#[test]
fn a_short_renewal_does_not_shorten_what_a_long_lease_needs() {
    let mut lab = Permits::read_write();
    let (long, short) = (attempt(1, 1).lease(90_000), attempt(2, 1));
    lab.hold(&[&long, &short]);
    assert_eq!(lab.renew_one(&short), 1);
    assert!(lab.ttl(PERMITS) > 80_000 && lab.ttl(LEASES) > 80_000);
    // Not even its own lease: a late copy of an earlier renewal must not undo an extension.
    assert_eq!(lab.renew_one(&long.clone().lease(20_000)), 1);
    assert_eq!(lab.acquire(&long.lease(20_000)).token(), lab.acquire(&attempt(1, 1)).token());
    assert!(lab.inspect().holds.iter().any(|(.., left)| *left > 80_000));
    assert!(lab.ttl(PERMITS) > 80_000);
}

/// The clock was set back by an hour since the grants: what is left is a lease and an hour.
#[test]
fn a_lease_that_no_call_has_asked_for_is_shortened_to_the_longest_one() {
    for (writes, in_full) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut lab = Permits::read_write();
        let a = if writes { writer(1, 1) } else { attempt(1, 1) };
        lab.hold(&[&a]);
        if in_full {
            lab.store_in_full();
        }
        assert_eq!(lab.renew_one(&a.clone().lease(3_630_000)), 1);
        let left = |lab: &mut Permits| lab.inspect().holds[0].3;
        assert_eq!(lab.renew_within(&a.clone().lease(20_000), 30_000), 1);
        assert!((25_000..=30_000).contains(&left(&mut lab)), "{}", left(&mut lab));
        // What a call has asked for stays, however late the copy is.
        assert_eq!(lab.renew_within(&a.clone().lease(90_000), 90_000), 1);
        assert_eq!(lab.renew_within(&a.clone().lease(20_000), 90_000), 1);
        assert!(left(&mut lab) > 80_000);
        // A look changes nothing, and neither does the renewal of another hold.
        assert_eq!(lab.renew_within(&a.clone().lease(0), 30_000), 1);
        assert_eq!(lab.renew_within(&attempt(2, 1), 30_000), 0);
        assert!(left(&mut lab) > 80_000);
    }
}

/// An extension is stored, so a late copy of an earlier and shorter one shortens nothing, and one of the same length
/// does.
#[test]
fn an_extension_shortens_to_the_longest_one_unless_a_longer_one_came_before() {
    for (writes, in_full) in [(false, true), (true, false), (true, true)] {
        let mut lab = Permits::read_write();
        let a = if writes { writer(1, 1) } else { attempt(1, 1) };
        let (token, other) = (lab.acquire(&a).token(), attempt(2, 1));
        if !writes {
            lab.hold(&[&other]);
        }
        if in_full {
            lab.store_in_full();
        }
        let left = |lab: &mut Permits| lab.inspect().holds.iter().find(|hold| hold.0 == a.id).unwrap().3;
        assert_eq!(lab.renew_one(&a.clone().lease(3_630_000)), 1);
        assert_eq!(lab.extend(&a.clone().lease(40_000), 40_000), 1);
        assert!((35_000..=40_000).contains(&left(&mut lab)), "{}", left(&mut lab));
        assert_eq!(lab.extend(&a.clone().lease(90_000), 90_000), 1);
        for late in [Permits::extend, Permits::renew_within] {
            assert_eq!(late(&mut lab, &a.clone().lease(40_000), 40_000), 1);
            assert!(left(&mut lab) > 80_000, "{}", left(&mut lab));
        }
        assert_eq!(lab.renew_one(&a.clone().lease(3_630_000)), 1);
        assert_eq!(lab.extend(&a.clone().lease(40_000), 40_000), 1);
        assert!(left(&mut lab) > 3_600_000, "a late copy shortens nothing, whatever it finds");
        assert_eq!(lab.renew_within(&a.clone().lease(1000), 90_000), 1);
        assert!((85_000..=90_000).contains(&left(&mut lab)), "{}", left(&mut lab));
        // All replies have the token alone, and the hold is counted as before.
        assert_eq!(lab.stored_token(&a), Ok(token.to_string()));
        assert_eq!(lab.acquire(&a).token(), token);
        assert_eq!(lab.state(&a), State::Granted(token));
        assert!(matches!(lab.release(&a), Released::Released { .. }));
        assert_eq!(lab.inspect().holds.len(), usize::from(!writes));
    }
}

/// Before Redis 7.2 each renewal may move the end of the leases by a millisecond. A hash that ended before them would
/// lose the holds.
#[test]
fn the_hash_does_not_end_before_the_leases() {
    let mut lab = Permits::semaphore(2);
    let (long, short) = (attempt(1, 1).lease(90_000), attempt(2, 1));
    lab.hold(&[&long, &short]);
    let hash = lab.keys[PERMITS].clone();
    lab.raw(&["PEXPIRE", &hash, "60000"]);
    assert_eq!(lab.renew_one(&short), 1);
    assert!(lab.ttl(PERMITS) > 80_000);
}

/// A reader's renewal does not keep the writer's hold, or the other way round.
#[test]
fn each_hold_has_a_lease_of_its_own() {
    let mut lab = Permits::read_write();
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    lab.hold(&[&a, &b]);
    lab.expire_hold(&a);
    assert_eq!(lab.renew_one(&b), 1);
    lab.change(&b, &writer(2, 2)).token();
    lab.assert_held(&[&writer(2, 2)]);
}

#[test]
fn a_lease_out_of_range_fails_the_call_and_says_nothing_of_the_hold() {
    let mut lab = Permits::semaphore(1);
    let a = attempt(1, 1);
    lab.hold(&[&a]);
    let keys = lab.keys.clone();
    assert_eq!(lab.try_renew(&[(&keys, &a.id, u64::MAX), (&keys, &a.id, 60_000)]), Err("ERR".to_owned()));
    assert_eq!(lab.renew(&[(&keys, &a.id, 60_000)]), [1]);
    assert!(lab.ttl(PERMITS) > 50_000);
    assert_eq!(lab.renew(&[]), [0; 0]);
}
