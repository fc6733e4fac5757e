//! `latch_delete` and `latch_inspect`.

use super::lab::{Counted, Deleted, Inspected, Latch, NONE, Set, State, TICKETS, TTL, call};
use crate::lab::attempt;

#[test]
fn waiters_of_a_deleted_latch_are_told() {
    let mut lab = Latch::of(2);
    let (a, b) = (attempt(2, 1), attempt(3, 1));
    lab.queue(&[&a, &b]);
    let inbox = lab.listen(2);
    assert_eq!(lab.delete(&call(1)), Deleted::Deleted);
    assert_eq!(lab.read(&inbox), [format!("gone {}", a.id)]);
    assert_eq!(lab.heartbeat(&[&a, &b]), [State::Gone, State::Gone]);
    assert_eq!((lab.inspect(), lab.ttl(TICKETS)), (NONE, -2));
    assert_eq!(lab.count_down(&call(2)), Counted::Count(0));
    assert_eq!(lab.set(&call(3), 4), Set::Set);
}

#[test]
fn nothing_is_left_if_no_copy_can_come() {
    let mut lab = Latch::new();
    assert_eq!(lab.set(&call(1).timeless(), 2), Set::Set);
    lab.count_down(&call(2).timeless());
    assert_eq!(lab.delete(&call(3).timeless()), Deleted::Deleted);
    assert_eq!(lab.server.keys(), [""; 0]);
    assert_eq!(lab.delete(&call(4).timeless()), Deleted::Gone);
    assert_eq!(lab.server.keys(), [""; 0]);
}

#[test]
fn inspecting_changes_nothing_and_counts_the_living() {
    let mut lab = Latch::new();
    assert_eq!(lab.inspect(), NONE);
    assert_eq!(lab.server.keys(), [""; 0]);
    lab.set(&call(1), 3);
    lab.queue(&[&attempt(2, 1), &attempt(3, 1)]);
    lab.expire_ticket(&attempt(2, 1), 1);
    let before = lab.dump();
    let Inspected { count: 3, ttl, waiters: 1 } = lab.inspect() else { panic!() };
    assert_eq!(
        (lab.listed(100), lab.listed(1), lab.listed(0)),
        (vec![attempt(3, 1).id], vec![attempt(3, 1).id], vec![])
    );
    before.assert_same(&lab.dump(), 0);
    assert!((1..=TTL as i64).contains(&ttl));
}
