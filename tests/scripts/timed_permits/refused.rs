//! Servers and users that refuse, and keys of other types: nothing is half done.

use super::*;

#[test]
fn a_server_that_takes_no_writes_says_nothing() {
    for refusal in Refusal::ALL {
        let mut lab = on(Lab::on(Refusal::server()));
        if !refusal.applies(&lab) {
            continue;
        }
        lab.raw(&["SET", NAME, "2"]);
        let [a, b, c, d] = [1, 2, 3, 4].map(|n| attempt(n, 1));
        assert_eq!(acquire(&mut lab, &a), Acquired::Granted(0));
        assert_eq!(cancel(&mut lab, &d), Ok(false));
        let call = copy(&mut lab, 1);
        refusal.begin(&mut lab);
        for attempt in [&a, &b, &d] {
            assert_eq!(acquired(&mut lab, attempt), Err(refusal.code()));
        }
        for attempt in [&a, &c] {
            assert_eq!(release(&mut lab, attempt), Err(refusal.code()));
            assert_eq!(cancel(&mut lab, attempt), Err(refusal.code()));
            assert_eq!(renewed(&mut lab, attempt), Err(refusal.code()), "a lease may be there at its master");
        }
        assert_eq!(cancel(&mut lab, &d), Err(refusal.code()), "also to a second copy");
        assert_eq!(set(&mut lab, call, 2), Err(refusal.code()));
        assert_eq!(look(&mut lab), (1, 1));
        refusal.end(&mut lab);
        assert_eq!(release(&mut lab, &a), Ok(true));
    }
}

#[test]
fn a_server_that_takes_no_writes_does_not_say_that_there_is_nothing() {
    for refusal in Refusal::ALL {
        let mut lab = on(Lab::on(Refusal::server()));
        if !refusal.applies(&lab) {
            continue;
        }
        let b = attempt(2, 1);
        refusal.begin(&mut lab);
        assert_eq!(acquired(&mut lab, &b), Err(refusal.code()), "there may be permits at its master");
        assert_eq!(looked(&mut lab, 0), Err(refusal.code()));
        refusal.end(&mut lab);
    }
}

/// A full server gives permits back, and no permit is taken there.
#[test]
fn a_full_server_gives_back() {
    let (mut lab, _) = begun(3);
    let [a, b, c] = [1, 2, 3].map(|n| attempt(n, 1));
    for taken in [&a, &b] {
        assert_eq!(acquire(&mut lab, taken), Acquired::Granted(0));
    }
    lab.raw(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(acquired(&mut lab, &c), Err("OOM".to_owned()));
    assert_eq!(renewed(&mut lab, &a), Ok(Ok(String::new())), "nobody loses a lease");
    assert_eq!((release(&mut lab, &a), cancel(&mut lab, &b)), (Ok(true), Ok(true)));
    lab.raw(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(look(&mut lab), (3, 0));
}

#[test]
fn without_the_right_to_publish_permits_are_given_back_all_the_same() {
    let (mut lab, _) = begun(1);
    let (a, b, over) = (attempt(1, 1), attempt(2, 1), attempt(3, 1));
    assert_eq!(acquire(&mut lab, &a), Acquired::Granted(0));
    lab.raw(&["ACL", "SETUSER", "default", "resetchannels"]);
    assert_eq!(release(&mut lab, &a), Ok(true));
    assert_eq!(acquire(&mut lab, &over), Acquired::Granted(0));
    lapse(&mut lab, &over);
    assert_eq!(acquire(&mut lab, &b), Acquired::Granted(0));
    let call = copy(&mut lab, 1);
    lab.assert_refused("NOPERM", |lab| set(lab, call, 5));
    lab.raw(&["ACL", "SETUSER", "default", "allchannels"]);
    assert_eq!(look(&mut lab), (0, 1));
}

#[test]
fn without_the_right_to_count_nothing_changes() {
    let (mut lab, mut ear) = begun(3);
    let [a, b, over] = [1, 2, 3].map(|n| attempt(n, 1));
    for taken in [&a, &over] {
        assert_eq!(acquire(&mut lab, taken), Acquired::Granted(0));
    }
    let call = copy(&mut lab, 1);
    lab.raw(&["ACL", "SETUSER", "default", "-incrby"]);
    lab.assert_refused("NOPERM", |lab| acquired(lab, &b));
    lab.assert_refused("NOPERM", |lab| release(lab, &a));
    lab.assert_refused("NOPERM", |lab| cancel(lab, &a));
    lab.assert_refused("NOPERM", |lab| set(lab, call, 5));
    lapse(&mut lab, &over);
    lab.assert_refused("NOPERM", |lab| acquired(lab, &b));
    assert_eq!(ear.heard(&mut lab), Vec::<String>::new());
    lab.raw(&["ACL", "SETUSER", "default", "+incrby"]);
    assert_eq!((release(&mut lab, &a), look(&mut lab)), (Ok(true), (3, 0)));
}

#[test]
fn keys_of_other_types_are_errors_and_stay() {
    let [a, b] = [1, 2].map(|n| attempt(n, 1));
    for text in ["x", "1.5", "1000000000000000"] {
        let (mut lab, _) = begun(1);
        assert_eq!(acquire(&mut lab, &a), Acquired::Granted(0));
        lab.raw(&["SET", NAME, text]);
        let call = copy(&mut lab, 1);
        lab.assert_refused("WRONGTYPE", |lab| acquired(lab, &b));
        lab.assert_refused("WRONGTYPE", |lab| set(lab, call, 1));
        assert_eq!(looked(&mut lab, 1), Err("WRONGTYPE".to_owned()));
        assert_eq!(renewed(&mut lab, &a), Ok(Ok(String::new())), "the lease is not there");
        if text != "1000000000000000" {
            lab.assert_refused("ERR", |lab| release(lab, &a));
        }
    }
    let (mut lab, _) = begun(1);
    lab.set_wrong(LEASES);
    let call = copy(&mut lab, 1);
    lab.assert_refused("WRONGTYPE", |lab| acquired(lab, &b));
    lab.assert_refused("WRONGTYPE", |lab| release(lab, &b));
    lab.assert_refused("WRONGTYPE", |lab| set(lab, call, 1));
    assert_eq!(renewed(&mut lab, &a), Ok(Err(-1)));
    assert_eq!(looked(&mut lab, 1), Err("WRONGTYPE".to_owned()));
}
