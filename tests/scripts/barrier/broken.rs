//! Generations that are broken, and why.

use super::lab::{Barrier, EXPIRED, LEFT, RESET, Reset, State};
use super::pass::told;
use crate::lab::attempt;
use crate::latch::lab::call;

#[test]
fn one_that_leaves_breaks_the_generation_for_all() {
    let mut lab = Barrier::of(3);
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    lab.queue(&[&a, &b]);
    let (own_inbox, inbox) = (lab.listen(1), lab.listen(2));
    assert!(lab.leave(&a));
    assert_eq!(lab.read(&own_inbox), [""; 0], "who leaves needs not be told");
    let [own, other] = lab.heartbeat(&[&a, &b])[..] else { panic!() };
    assert_eq!(own, other);
    assert_eq!(other.end().place, LEFT);
    assert_eq!(lab.read(&inbox), [told(&b, other.end())]);
    assert_eq!(lab.inspect().waiters, 0);
    // The next generation is a fresh one.
    lab.queue(&[&attempt(1, 2), &attempt(2, 2)]);
    let end = lab.arrive(&attempt(3, 1)).end();
    assert_eq!(end.place, 2);
    assert!(end.generation > other.end().generation);
}

#[test]
fn one_that_has_passed_breaks_nothing_by_leaving() {
    let mut lab = Barrier::of(2);
    let (a, b, next) = (attempt(1, 1), attempt(2, 1), attempt(3, 1));
    lab.queue(&[&a]);
    lab.arrive(&b).end();
    lab.queue(&[&next]);
    assert!(!lab.leave(&a) && !lab.leave(&b));
    assert_eq!(lab.heartbeat(&[&a])[0].end().place, 0, "it has passed all the same");
    assert_eq!(lab.heartbeat(&[&next]), [State::Waiting]);
}

/// Whoever asks finds it: a party, one that arrives, one that leaves, an operator.
#[test]
fn a_lease_that_ends_breaks_the_generation() {
    for who in 0..5 {
        let mut lab = Barrier::of(3);
        let (dead, a, next) = (attempt(1, 1), attempt(2, 1), attempt(3, 1));
        lab.queue(&[&dead, &a]);
        let inbox = lab.listen(2);
        lab.expire(&dead);
        match who {
            0 => assert_eq!(lab.heartbeat(&[&a])[0].end().place, EXPIRED),
            1 => {
                // The arrival is that of the next generation.
                lab.queue(&[&next]);
                assert_eq!(lab.heartbeat(&[&next]), [State::Waiting]);
            }
            2 => assert!(lab.leave(&a)),
            3 => assert_eq!(lab.reset(&call(91)), Reset::Reset),
            _ => assert_eq!(lab.arrive(&a).end().place, EXPIRED, "its second copy"),
        }
        let [of_dead, of_a] = lab.heartbeat(&[&dead, &a])[..] else { panic!() };
        assert_eq!((of_dead, of_a.end().place), (of_a, EXPIRED), "{who}");
        // Unless it has the answer.
        let told = if matches!(who, 1 | 3) { vec![told(&a, of_a.end())] } else { Vec::new() };
        assert_eq!(lab.read(&inbox), told, "{who}");
    }
}

/// The last party does not make up for one whose lease has ended.
#[test]
fn the_last_arrival_finds_a_lease_that_has_ended() {
    let mut lab = Barrier::of(2);
    let (dead, a) = (attempt(1, 1), attempt(2, 1));
    lab.queue(&[&dead]);
    lab.expire(&dead);
    lab.queue(&[&a]);
    assert_eq!(lab.heartbeat(&[&dead])[0].end().place, EXPIRED);
    let end = lab.arrive(&attempt(3, 1)).end();
    assert_eq!(end.place, 1, "with the one that waits");
    assert_eq!(lab.heartbeat(&[&a])[0].end().generation, end.generation);
    // A barrier of one is not held up by it.
    let mut lab = Barrier::of(1);
    lab.with_parties(2, |lab| lab.queue(&[&dead]));
    lab.expire(&dead);
    assert_eq!(lab.arrive(&a).end().place, 0);
    assert_eq!(lab.heartbeat(&[&dead])[0].end().place, EXPIRED);
}

/// A party that asks in time again goes on, although its lease had ended: nobody has noticed.
#[test]
fn a_lease_that_nobody_has_missed_goes_on() {
    let mut lab = Barrier::of(2);
    let a = attempt(1, 1);
    lab.queue(&[&a]);
    lab.expire(&a);
    assert_eq!(lab.heartbeat(&[&a]), [State::Waiting]);
    assert_eq!(lab.arrive(&attempt(2, 1)).end().place, 1);
}

#[test]
fn an_operator_breaks_what_waits() {
    let mut lab = Barrier::of(2);
    let a = attempt(1, 1);
    assert_eq!(lab.reset(&call(91)), Reset::Gone);
    assert_eq!(lab.server.keys(), [""; 0]);
    lab.queue(&[&a]);
    let inbox = lab.listen(1);
    assert_eq!(lab.reset(&call(92).not_after(1)), Reset::Stale);
    assert_eq!(lab.reset(&call(92)), Reset::Reset);
    let end = lab.heartbeat(&[&a])[0].end();
    assert_eq!(end.place, RESET);
    assert_eq!(lab.read(&inbox), [told(&a, end)]);
}

/// Thousands of parties are told in one call.
#[test]
fn the_most_parties() {
    let mut lab = Barrier::of(1000);
    lab.checked = false;
    let parties: Vec<_> = (1..1000).map(|n| attempt(n, 1)).collect();
    lab.queue(&parties.iter().collect::<Vec<_>>());
    let inbox = lab.listen(500);
    let end = lab.arrive(&attempt(1000, 1)).end();
    assert_eq!(end.place, 999);
    assert_eq!(lab.read(&inbox).len(), 1);
    let mut places: Vec<u64> = parties.iter().map(|party| lab.heartbeat(&[party])[0].end().place).collect();
    places.sort_unstable();
    assert!(places.into_iter().eq(0..999));
    // And broken.
    let parties: Vec<_> = (1..1000).map(|n| attempt(n, 2)).collect();
    lab.queue(&parties.iter().collect::<Vec<_>>());
    assert!(lab.leave(&parties[0]));
    assert_eq!(lab.read(&inbox).len(), 1);
    assert!(parties.iter().all(|party| lab.heartbeat(&[party])[0].end().place == LEFT));
}
