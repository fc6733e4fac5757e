//! `lock_force_release` and `lock_inspect`.

use crate::lab::{Around, Forced, Inspected, Lab, NOT_HELD, RELEASED, attempt, grant};

#[test]
fn a_forced_release_tells_the_holder_and_fences_it_out() {
    let (mut lab, a, old) = Lab::held();
    let inbox = lab.listen(1);
    let Forced::Released { token, more: false } = lab.force_release(&a) else { panic!() };
    assert!(token > old);
    lab.assert_free();
    assert_eq!(lab.read(&inbox), [format!("revoked {}", a.id)]);
    assert_eq!(lab.release(&a), NOT_HELD);
    assert!(lab.acquire(&attempt(2, 1)).token() > token);
}

#[test]
fn a_forced_release_fences_out_the_whole_span() {
    let mut lab = Lab::new();
    let a = attempt(1, 1).span(32);
    let old = lab.acquire(&a).token();
    let ahead = (lab.clock().us + 1_000_000_000).to_string();
    // The counter is far ahead of the clock, so that only the counter decides.
    let fence = lab.keys[3].clone();
    lab.raw(&["SET", &fence, &ahead, "PX", "100000"]);
    let Forced::Released { token, .. } = lab.force_release(&a) else { panic!() };
    assert!(token >= old + 32);
    assert_eq!(token.to_string(), (ahead.parse::<u64>().unwrap() + 1).to_string());
    assert_eq!(lab.acquire(&attempt(2, 1)).token(), token + 1);
}

/// A hold can outlive its counter: that lives for 65 minutes after the last grant, and renewals do not keep it.
#[test]
fn a_forced_release_fences_out_a_holder_whose_counter_is_lost() {
    let mut lab = Lab::new();
    let (fence, ahead) = (lab.keys[3].clone(), lab.clock().us + 1_000_000_000);
    lab.raw(&["SET", &fence, &ahead.to_string(), "PX", "100000"]);
    let a = attempt(1, 1);
    let old = lab.acquire(&a).token();
    lab.del(3);
    let Forced::Released { token, .. } = lab.force_release(&a) else { panic!() };
    assert!(token > old, "{token} after {old}");
    assert!(lab.acquire(&attempt(2, 1)).token() > token);
}

#[test]
fn a_forced_release_hands_on() {
    let (mut lab, a, _) = Lab::held();
    let b = attempt(2, 1);
    let (revoked, granted) = (lab.listen(1), lab.listen(2));
    lab.acquire(&b);
    let Forced::Released { token, more: false } = lab.force_release(&a) else { panic!() };
    lab.assert_holder(&b);
    let next: u64 = lab.inspect().token.parse().unwrap();
    assert!(next > token);
    assert_eq!(lab.read(&revoked), [format!("revoked {}", a.id)]);
    assert_eq!(lab.read(&granted), [grant(&b, next)]);
}

#[test]
fn a_free_lock_is_handed_on() {
    let mut lab = Lab::new();
    assert_eq!(lab.force_release(&attempt(1, 1)), Forced::NotHeld { more: false });
    assert_eq!(lab.server.keys(), [""; 0]);
    let (mut lab, a, _) = Lab::held();
    let b = attempt(2, 1);
    let inbox = lab.listen(2);
    lab.acquire(&b);
    lab.expire_hold();
    assert_eq!(lab.force_release(&a), Forced::NotHeld { more: false });
    lab.assert_holder(&b);
    assert_eq!(lab.read(&inbox).len(), 1);
}

/// An operator who saw one holder must not take the lock from another.
#[test]
fn only_the_holder_that_was_named_is_forced_out() {
    let (mut lab, a, _) = Lab::held();
    let b = attempt(2, 1);
    let inbox = lab.listen(2);
    lab.acquire(&b);
    let (first, second) = lab.twice(0, |lab| lab.force_release(&a));
    assert!(matches!(first, Forced::Released { .. }));
    assert_eq!(second, Forced::NotHeld { more: false });
    lab.assert_holder(&b);
    assert_eq!(lab.read(&inbox).len(), 1, "the grant, no revocation");
}

#[test]
fn inspecting_changes_nothing_and_counts_the_living() {
    let mut lab = Lab::new();
    let nothing = Inspected { holder: String::new(), token: String::new(), ttl: -2, waiters: 0 };
    assert_eq!(lab.inspect(), nothing);
    let a = attempt(1, 1);
    let token = lab.acquire(&a).token();
    let waiters: Vec<_> = (2..6).map(|client| attempt(client, 1)).collect();
    for waiter in &waiters {
        lab.acquire(waiter);
    }
    lab.expire_ticket(&waiters[0]);
    lab.expire_ticket(&waiters[2]);
    let before = lab.dump();
    let inspected = lab.inspect();
    // Two of the first three have expired.
    for (listed, living) in
        [(100, &waiters[..]), (4, &waiters), (3, &waiters[..3]), (2, &waiters[..2]), (1, &[]), (0, &[])]
    {
        let living = living.iter().enumerate().filter(|(n, _)| n % 2 == 1).map(|(_, waiter)| waiter.ticket());
        assert_eq!(lab.listed(listed), living.collect::<Vec<_>>(), "{listed}");
    }
    before.assert_same(&lab.dump(), 0);
    assert_eq!((inspected.holder.as_str(), inspected.waiters), (a.id.as_str(), 2));
    assert_eq!(inspected.token, token.to_string());
    assert!(inspected.ttl > 0);
    assert_eq!(lab.release(&a), RELEASED);
}
