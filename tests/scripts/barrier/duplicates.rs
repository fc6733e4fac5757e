//! Every script may be sent twice: the second, late copy changes nothing, not even the next generation.

use super::lab::{Arrived, Barrier, Reset, State};
use crate::lab::{Around, attempt};
use crate::latch::lab::call;

const REFRESH: u64 = 5_000;

#[test]
fn an_arrival() {
    let mut lab = Barrier::of(2);
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    let (first, second) = lab.twice(REFRESH, |lab| lab.arrive(&a));
    assert!(matches!((first, second), (Arrived::Queued(_), Arrived::Queued(_))));
    let (first, second) = lab.twice(REFRESH, |lab| lab.arrive(&b));
    assert_eq!(first, second);
    assert_eq!(first.end().place, 1);
    // The next generation waits now.
    lab.queue(&[&attempt(3, 1)]);
    assert_eq!(lab.twice(0, |lab| lab.arrive(&a)).0.end().generation, first.end().generation);
    assert_eq!(lab.inspect().waiters, 1);
}

#[test]
fn a_leave() {
    let mut lab = Barrier::of(3);
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    lab.queue(&[&a, &b]);
    assert_eq!(lab.twice(0, |lab| lab.leave(&a)), (true, false));
    lab.queue(&[&attempt(2, 2)]);
    assert_eq!(lab.twice(0, |lab| lab.leave(&a)), (false, false));
    assert_eq!(lab.heartbeat(&[&attempt(2, 2)]), [State::Waiting]);
    // Of one that never arrived.
    assert_eq!(lab.twice(0, |lab| lab.leave(&attempt(4, 1))), (false, false));
}

#[test]
fn a_reset() {
    let mut lab = Barrier::of(2);
    lab.queue(&[&attempt(1, 1)]);
    assert_eq!(lab.twice(0, |lab| lab.reset(&call(91))), (Reset::Reset, Reset::Reset));
    // A copy of a call that found none, and was sent before.
    assert_eq!(lab.twice(0, |lab| lab.reset(&call(92).resent())), (Reset::Gone, Reset::Gone));
    lab.queue(&[&attempt(1, 2)]);
    assert_eq!(lab.twice(0, |lab| lab.reset(&call(91))).0, Reset::Reset);
    assert_eq!(lab.twice(0, |lab| lab.reset(&call(92))).0, Reset::Gone);
    assert_eq!(lab.heartbeat(&[&attempt(1, 2)]), [State::Waiting]);
}

#[test]
fn a_heartbeat() {
    let mut lab = Barrier::of(2);
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    lab.queue(&[&a]);
    lab.twice(REFRESH, |lab| lab.heartbeat(&[&a, &b]));
    lab.arrive(&b).end();
    let (first, second) = lab.twice(0, |lab| lab.heartbeat(&[&a, &b]));
    assert_eq!(first, second);
}
