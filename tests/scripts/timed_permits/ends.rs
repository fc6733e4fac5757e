//! Leases that are over, permits that Java takes, and permits that are given back by their ids.

use super::*;

/// An id as Java makes it, with a byte that ends texts and patterns, and the end of its lease.
fn java_takes(lab: &mut Lab, id: &str, ends: &str) {
    lab.raw(&["DECRBY", NAME, "1"]);
    lab.raw(&["ZADD", LEASES, ends, id]);
}

#[test]
fn what_is_over_is_given_back_to_the_next_that_asks() {
    let (mut lab, mut ear) = begun(1);
    let [a, b] = [1, 2].map(|n| attempt(n, 1));
    assert_eq!(acquire(&mut lab, &a), Acquired::Granted(0));
    lapse(&mut lab, &a);
    assert_eq!(look(&mut lab), (1, 0));
    assert_eq!(acquire(&mut lab, &b), Acquired::Granted(0));
    assert_eq!((look(&mut lab), ear.heard(&mut lab)), ((0, 1), vec!["1".to_owned()]));
    assert_eq!(release(&mut lab, &a), Ok(false), "it is another one's by now");
    assert_eq!(look(&mut lab), (0, 1));
}

#[test]
fn what_is_over_and_not_given_back_is_still_its_own() {
    let (mut lab, mut ear) = begun(1);
    let [a, b] = [1, 2].map(|n| attempt(n, 1));
    assert_eq!(acquire(&mut lab, &a), Acquired::Granted(0));
    lapse(&mut lab, &a);
    assert_eq!(acquire(&mut lab, &a), Acquired::Granted(0));
    assert!(left(&mut lab, &a).unwrap() > 0);
    assert!(acquire(&mut lab, &b).busy() > 0);
    lapse(&mut lab, &a);
    let late = a.clone().not_after(1);
    assert_eq!((acquire(&mut lab, &late), left(&mut lab, &a).unwrap() < 0), (Acquired::Stale, true));
    // As Redisson does: it is given back, and was over.
    assert_eq!(release(&mut lab, &a), Ok(false));
    assert_eq!((look(&mut lab), ear.heard(&mut lab)), ((1, 0), vec!["1".to_owned()]));
}

/// A call gives back 256 at most, and more are left only if none is free then.
#[test]
fn one_call_gives_back_so_many() {
    let (mut lab, mut ear) = begun(0);
    lab.checked = false;
    for n in 0..300 {
        lab.raw(&["ZADD", LEASES, "5", &format!("id {n}")]);
    }
    let a = attempt(1, 1);
    lab.raw(&["SET", NAME, "-256"]);
    let sent = permits().acquire(a.wire(), true);
    let busy = |lab: &mut Lab| run(lab, "timed_acquire", &sent, |words| (words.word(), words.next(), words.flag()));
    assert_eq!(busy(&mut lab), Ok(("BUSY".to_owned(), 0_i64, true)), "there are more");
    assert_eq!((free(&mut lab).as_str(), look(&mut lab)), ("0", (44, 0)));
    assert_eq!(acquire(&mut lab, &a), Acquired::Granted(0));
    assert_eq!((look(&mut lab), ear.heard(&mut lab)), ((43, 1), vec!["44".to_owned()]));
}

#[test]
fn the_next_end_is_told() {
    let (mut lab, _) = begun(2);
    let a = attempt(1, 1);
    java_takes(&mut lab, "for ever", NEVER);
    let ends = (lab.now() + 5_000).to_string();
    java_takes(&mut lab, "for a while", &ends);
    assert!((1..=5_000).contains(&acquire(&mut lab, &a).busy()));
    let (free, taken, held) = looked(&mut lab, 1000).unwrap();
    assert_eq!((free, taken, held.len()), (0, 2, 2));
    assert!(held[0].1 > 0 && held[1].1 == -1, "{held:?}");
    assert_eq!(looked(&mut lab, 1).unwrap().2.len(), 1);
    assert_eq!(looked(&mut lab, 0).unwrap().2.len(), 0);
    lab.raw(&["ZREM", LEASES, "for a while"]);
    assert!(acquire(&mut lab, &a).busy() > 900_000_000_000_000 - 5_000_000_000_000);
}

#[test]
fn any_permit_is_given_back_by_its_id() {
    let (mut lab, mut ear) = begun(2);
    // Any byte may be in an id of Java.
    let id: Vec<u8> = [0, 10, 37, 255, 128, 65].into_iter().chain(0..10).collect();
    let digits: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    lab.checked = false;
    lab.raw(&["DECRBY", NAME, "1"]);
    let _: u64 = redis::cmd("ZADD").arg(LEASES).arg(NEVER).arg(&id).query(&mut lab.connection).unwrap();
    assert_eq!(looked(&mut lab, 5).unwrap().2, [(digits.clone(), -1)]);
    assert_eq!(release_id(&mut lab, &digits, 1), Ok(true));
    assert_eq!((look(&mut lab), ear.heard(&mut lab)), ((2, 0), vec!["2".to_owned()]));
    // A second copy is answered like the first, and another call is not.
    assert_eq!([1, 2, 1, 2].map(|n| release_id(&mut lab, &digits, n)), [Ok(true), Ok(false), Ok(true), Ok(false)]);
    assert_eq!((look(&mut lab), ear.heard(&mut lab)), ((2, 0), Vec::new()));
    lab.checked = true;
    // One of bowline, whose request comes once more.
    let a = attempt(1, 1);
    assert_eq!(acquire(&mut lab, &a), Acquired::Granted(0));
    lab.twice(0, |lab| assert_eq!(release_id(lab, &a.wire().permit(), 3), Ok(true)));
    assert!(acquire(&mut lab, &a).busy() > 0);
    assert_eq!((release(&mut lab, &a), cancel(&mut lab, &a), look(&mut lab)), (Ok(false), Ok(false), (2, 0)));
    // A call that found nothing says so again, whatever came meanwhile.
    let b = attempt(2, 1);
    assert_eq!(release_id(&mut lab, &b.wire().permit(), 4), Ok(false));
    assert_eq!(release_id(&mut lab, &b.wire().permit(), 4), Ok(false));
    // One that is over is given back, and the answer is no.
    let c = attempt(3, 1);
    assert_eq!(acquire(&mut lab, &c), Acquired::Granted(0));
    lapse(&mut lab, &c);
    lab.twice(0, |lab| assert_eq!(release_id(lab, &c.wire().permit(), 5), Ok(false)));
    assert_eq!(look(&mut lab), (2, 0));
}

#[test]
fn a_permit_of_a_semaphore_that_was_deleted_is_given_back_as_redisson_does() {
    let (mut lab, _) = begun(3);
    let a = attempt(1, 1);
    assert_eq!(acquire(&mut lab, &a), Acquired::Granted(0));
    lab.raw(&["DEL", NAME]);
    assert_eq!((release(&mut lab, &a), look(&mut lab)), (Ok(true), (1, 0)));
    assert_eq!(acquire(&mut lab, &a), Acquired::Granted(0));
    lab.raw(&["DEL", NAME, LEASES]);
    assert_eq!((release(&mut lab, &a), renewed(&mut lab, &a), look(&mut lab)), (Ok(false), Ok(Err(0)), (0, 0)));
}
