//! Every script may be sent twice: the second, late copy changes nothing, not even the next latch.

use super::lab::{Counted, Deleted, LATCH, Latch, NONE, Set, State, Waits, call};
use crate::lab::{Around, attempt};

const REFRESH: u64 = 5_000;

#[test]
fn each_attempt_id_counts_once() {
    let mut lab = Latch::of(3);
    assert_eq!(lab.twice(0, |lab| lab.count_down(&call(1))), (Counted::Count(2), Counted::Count(2)));
    assert_eq!(lab.twice(0, |lab| lab.count_down(&call(2))), (Counted::Count(1), Counted::Count(1)));
    assert_eq!(lab.count_down(&call(1)), Counted::Count(1), "what is left now");
    assert_eq!(lab.twice(0, |lab| lab.count_down(&call(3))), (Counted::Count(0), Counted::Count(0)));
    assert_eq!(lab.twice(0, |lab| lab.count_down(&call(4))), (Counted::Count(0), Counted::Count(0)));
}

#[test]
fn late_copies_do_not_count_on_the_next_latch() {
    let mut lab = Latch::of(1);
    // A first count, a second copy of a call that finds a count of zero, and a call of a client that does not know the
    // server's clock.
    let timeless = call(50).timeless();
    lab.count_down(&call(1));
    lab.count_down(&call(2).resent());
    lab.count_down(&timeless);
    assert_eq!(lab.set(&call(3), 5), Set::Set);
    assert_eq!(lab.twice(0, |lab| lab.count_down(&call(1))).0, Counted::Count(5));
    assert_eq!(lab.twice(0, |lab| lab.count_down(&call(2))).0, Counted::Count(5));
    assert_eq!(lab.count_down(&timeless), Counted::Count(4), "the next latch does not know it");
    // The late copy changes nothing after a deletion, either.
    lab.count_down(&call(4));
    lab.delete(&call(5));
    assert_eq!(lab.set(&call(6), 5), Set::Set);
    assert_eq!(lab.count_down(&call(4)), Counted::Count(5));
}

/// It ended by its time to live before they came.
#[test]
fn nor_does_one_to_a_latch_that_is_over() {
    let mut lab = Latch::new();
    assert_eq!(lab.try_set(&call(1), 3, 1_000), Ok(Set::Set));
    assert_eq!(lab.count_down(&call(2)), Counted::Count(2), "it is over too soon");
    let start = std::time::Instant::now();
    while lab.inspect() != NONE || lab.ttl(LATCH) != -2 {
        assert!(start.elapsed() < std::time::Duration::from_secs(10));
    }
    assert_eq!(lab.twice(0, |lab| lab.count_down(&call(3).resent())).0, Counted::Count(0));
    assert_eq!(lab.set(&call(4), 5), Set::Set);
    for n in [2, 3] {
        assert_eq!(lab.twice(0, |lab| lab.count_down(&call(n))).0, Counted::Count(5));
    }
    assert_eq!(lab.set(&call(1), 3), Set::Set);
    assert_eq!(lab.inspect().count, 5);
}

/// A caller that was told EXISTS has set no latch.
#[test]
fn a_late_copy_of_what_was_refused_sets_nothing() {
    let mut lab = Latch::of(1);
    assert_eq!(lab.set(&call(1).resent(), 5), Set::Exists(1));
    lab.count_down(&call(2));
    assert_eq!(lab.twice(0, |lab| lab.set(&call(1), 5)).0, Set::Exists(0));
    assert_eq!(lab.inspect().count, 0);
    assert_eq!(lab.set(&call(3), 7), Set::Set);
    assert_eq!(lab.twice(0, |lab| lab.set(&call(1), 5)).0, Set::Exists(7));
}

#[test]
fn set() {
    let mut lab = Latch::new();
    assert_eq!(lab.twice(0, |lab| lab.set(&call(1), 1)), (Set::Set, Set::Set));
    assert_eq!(lab.twice(0, |lab| lab.set(&call(2), 1)), (Set::Exists(1), Set::Exists(1)));
    lab.count_down(&call(3));
    // The latch was counted down. The late copy must not close it again.
    assert_eq!(lab.twice(0, |lab| lab.set(&call(1), 1)), (Set::Set, Set::Set));
    assert_eq!(lab.inspect().count, 0);
    assert_eq!(lab.set(&call(4), 9), Set::Set);
    lab.count_down(&call(5));
    assert_eq!(lab.twice(0, |lab| lab.set(&call(1), 1)), (Set::Set, Set::Set));
    assert_eq!(lab.inspect().count, 8);
}

#[test]
fn delete() {
    let mut lab = Latch::of(2);
    assert_eq!(lab.twice(0, |lab| lab.delete(&call(1))), (Deleted::Deleted, Deleted::Deleted));
    assert_eq!(lab.set(&call(2), 3), Set::Set);
    assert_eq!(lab.twice(0, |lab| lab.delete(&call(1))).0, Deleted::Deleted);
    assert_eq!(lab.inspect().count, 3, "the next latch stays");
    // The same for a call that found no latch and was sent again.
    let mut lab = Latch::new();
    assert_eq!(lab.delete(&call(1).resent()), Deleted::Gone);
    lab.set(&call(2), 3);
    assert_eq!(lab.twice(0, |lab| lab.delete(&call(1))), (Deleted::Gone, Deleted::Gone));
    assert_eq!(lab.inspect().count, 3);
}

#[test]
fn wait_heartbeat_and_cancel() {
    let mut lab = Latch::of(1);
    let a = attempt(2, 1);
    let waits = lab.twice(REFRESH, |lab| matches!(lab.wait(&a), Waits::Queued(_)));
    assert_eq!(waits, (true, true));
    let heartbeat_reply = lab.twice(REFRESH, |lab| lab.heartbeat(&[&a, &attempt(2, 2)]));
    assert_eq!(heartbeat_reply.0, [State::Waiting, State::Gone]);
    assert_eq!(heartbeat_reply.0, heartbeat_reply.1);
    assert_eq!(lab.twice(0, |lab| lab.cancel(&a)), (true, false));
    assert_eq!(lab.twice(0, |lab| lab.wait(&attempt(2, 3).not_after(1))).0, Waits::Stale);
    lab.count_down(&call(1));
    assert_eq!(lab.twice(0, |lab| lab.wait(&a)).0, Waits::Open);
    assert_eq!(lab.twice(0, |lab| lab.heartbeat(&[&a])).0, [State::Open]);
}
