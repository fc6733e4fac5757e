//! `permit_renew_short`: holds that are alone, by their main keys.

use super::lab::{LEASES, PERMITS, Permits, writer};
use crate::lab::attempt;

#[test]
fn every_answer() {
    let mut lab = Permits::semaphore(3);
    lab.checked = false;
    let (mine, other) = (attempt(1, 1).lease(10_000), attempt(2, 1).lease(10_000));
    let mut keys = Vec::new();
    for name in ["alone", "gone", "of another", "of a wrong type", "joined", "with a limit", "stored in full"] {
        lab.rename(name);
        match name {
            "gone" => {}
            "of another" => lab.hold(&[&other]),
            "of a wrong type" => lab.set_wrong(PERMITS),
            "joined" => lab.hold(&[&mine, &other]),
            "with a limit" => {
                lab.hold(&[&mine]);
                lab.set_limit(3);
            }
            "stored in full" => {
                lab.hold(&[&mine]);
                lab.store_in_full();
            }
            _ => lab.hold(&[&mine]),
        }
        keys.push(lab.keys.clone());
    }
    let holds: Vec<_> = keys.iter().map(|keys| (&keys[..], mine.id.as_str(), 60_000)).collect();
    let before: Vec<_> = keys.iter().map(|keys| [PERMITS, LEASES].map(|key| lab.server.ttl_ms(&keys[key]))).collect();
    assert_eq!(lab.try_renew_short(&holds), Ok(vec![1, 0, 0, -1, -2, -2, -2]));
    for (n, (keys, before)) in keys.iter().zip(before).enumerate() {
        let ttls = [PERMITS, LEASES].map(|key| lab.server.ttl_ms(&keys[key]));
        if n == 0 {
            assert!(ttls[0] > 50_000 && ttls[1] == -2, "{ttls:?}: it stays short");
        } else {
            let same = |(before, after): (&i64, &i64)| before == after || *before > *after && *after > before - 5_000;
            assert!(before.iter().zip(&ttls).all(same), "{n}: {before:?}, {ttls:?}");
        }
    }
}

#[test]
fn a_lease_of_zero_only_looks() {
    let mut lab = Permits::read_write();
    let (a, keys) = (writer(1, 1), lab.keys.clone());
    let before = lab.acquire(&a).token();
    assert_eq!(lab.try_renew_short(&[(&keys, &a.id, 0), (&keys, &attempt(2, 1).id, 0)]), Ok(vec![1, 0]));
    assert!(lab.ttl(PERMITS) <= 30_000);
    assert_eq!(lab.acquire(&a).token(), before);
}

/// The rules are those of the lock's renewal.
#[test]
fn the_longest_lease_that_was_asked_for_counts() {
    let mut lab = Permits::read_write();
    let a = writer(1, 1);
    let (token, keys) = (lab.acquire(&a).token(), lab.keys.clone());
    let left = |lab: &mut Permits| lab.inspect().holds[0].3;
    assert_eq!(lab.try_renew_short(&[(&keys, &a.id, 3_630_000)]), Ok(vec![1]));
    assert_eq!(lab.renew_within_short(&a.clone().lease(20_000), 30_000), 1);
    assert!((25_000..=30_000).contains(&left(&mut lab)), "{}", left(&mut lab));
    assert_eq!(lab.extend_short(&a.clone().lease(90_000), 90_000), 1);
    for late in [Permits::extend_short, Permits::renew_within_short] {
        assert_eq!(late(&mut lab, &a.clone().lease(40_000), 40_000), 1);
        assert!(left(&mut lab) > 80_000, "{}", left(&mut lab));
    }
    assert_eq!((lab.stored_token(&a), lab.acquire(&a).token()), (Ok(token.to_string()), token));
}

#[test]
fn a_lease_out_of_range_fails_the_call_and_says_nothing_of_the_hold() {
    let mut lab = Permits::semaphore(1);
    let (a, keys) = (attempt(1, 1), lab.keys.clone());
    lab.hold(&[&a]);
    assert_eq!(lab.try_renew_short(&[(&keys, &a.id, u64::MAX), (&keys, &a.id, 60_000)]), Err("ERR".to_owned()));
    assert_eq!(lab.try_renew_short(&[(&keys, &a.id, 60_000)]), Ok(vec![1]));
    assert!(lab.ttl(PERMITS) > 50_000);
    assert_eq!(lab.try_renew_short(&[]), Ok(Vec::new()));
}
