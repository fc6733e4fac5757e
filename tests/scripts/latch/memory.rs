//! What a latch remembers of the calls, for how long, and how much of it there is.

use super::lab::{CALLS, Counted, Deleted, LATCH, Latch, Set, call};

/// The first copy of a call that changes nothing leaves nothing, however many of them there are.
#[test]
fn calls_that_change_nothing_are_not_remembered() {
    let mut lab = Latch::new();
    lab.checked = false;
    for n in 0..20_000 {
        assert_eq!(lab.count_down(&call(n)), Counted::Count(0));
    }
    assert_eq!(lab.delete(&call(20_000)), Deleted::Gone);
    assert_eq!(lab.server.keys(), [""; 0]);

    // An open latch, and one that still has a count.
    let until = lab.now() + 60_000;
    for count in [1, 2] {
        assert_eq!(lab.try_set(&call(30_000 + count).known_until(until), count, 50_000), Ok(Set::Set));
        assert_eq!(lab.count_down(&call(30_010 + count).known_until(until)), Counted::Count(count - 1));
        let (remembered, ttl) = (lab.remembered(), lab.ttl(LATCH));
        for n in 0..200 {
            if count == 1 {
                assert_eq!(lab.count_down(&call(40_000 + n)), Counted::Count(0));
            } else {
                assert_eq!(lab.set(&call(40_000 + n), 5), Set::Exists(1));
            }
        }
        assert_eq!(lab.remembered(), remembered);
        assert!(lab.ttl(LATCH) <= ttl && lab.ttl(CALLS) <= 60_001, "nothing lives longer for that");
    }
}

/// The answer to the first copy was lost. It did nothing, and what the second does or finds is known to all others.
#[test]
fn the_second_copy_is_remembered_whatever_it_finds() {
    // The second copy counts on a latch that was set in between.
    let mut lab = Latch::new();
    assert_eq!(lab.count_down(&call(1)), Counted::Count(0));
    lab.set(&call(2), 3);
    assert_eq!(lab.count_down(&call(1).resent()), Counted::Count(2));
    assert_eq!(lab.count_down(&call(1).resent()), Counted::Count(2));
    // The second copy finds no latch. The first copy arrives later.
    let mut lab = Latch::new();
    assert_eq!(lab.count_down(&call(1).resent()), Counted::Count(0));
    lab.set(&call(2), 3);
    assert_eq!(lab.count_down(&call(1)), Counted::Count(3));
    // The second copy of a set is refused before the first copy arrives.
    assert_eq!(lab.set(&call(3).resent(), 9), Set::Exists(3));
    assert_eq!(lab.delete(&call(4)), Deleted::Deleted);
    assert_eq!(lab.set(&call(3), 9), Set::Exists(0));
    // The second copy of a deletion finds nothing.
    assert_eq!(lab.delete(&call(5).resent()), Deleted::Gone);
    lab.set(&call(6), 1);
    assert_eq!(lab.delete(&call(5)), Deleted::Gone);
    assert_eq!(lab.inspect().count, 1);
}

/// Every copy may come until the same time, which the first one says.
#[test]
fn a_copy_that_may_come_later_than_the_first_is_known() {
    let mut lab = Latch::of(5);
    let (soon, last) = (lab.now() + 40, lab.now() + 3_600_000);
    let first = call(1).known_until(last).not_after(soon);
    assert_eq!(lab.count_down(&first), Counted::Count(4));
    while lab.now() <= soon {
        std::thread::yield_now();
    }
    // Other calls are remembered meanwhile, and remove the entries that are over.
    for n in 2..4 {
        lab.count_down(&call(n));
    }
    assert_eq!(lab.count_down(&first), Counted::Count(2), "known, and not told that it is late");
    let second = call(1).known_until(last).not_after(last).resent();
    assert_eq!(lab.count_down(&second), Counted::Count(2));
    // The same for a set and a deletion.
    let soon = lab.now() + 40;
    assert_eq!(lab.delete(&call(10).not_after(soon)), Deleted::Deleted);
    assert_eq!(lab.set(&call(11).not_after(soon), 7), Set::Set);
    while lab.now() <= soon {
        std::thread::yield_now();
    }
    assert_eq!(lab.count_down(&call(12)), Counted::Count(6));
    assert_eq!(lab.delete(&call(10).resent()), Deleted::Deleted);
    assert_eq!(lab.set(&call(11).resent(), 9), Set::Set);
    assert_eq!(lab.inspect().count, 6);
}

#[test]
fn what_is_remembered_lives_as_long_as_a_copy_can_come() {
    let mut lab = Latch::new();
    let until = lab.now() + 40_000;
    assert_eq!(lab.set(&call(1).known_until(until), 2), Set::Set);
    assert_eq!(lab.delete(&call(2).known_until(until - 20_000)), Deleted::Deleted);
    assert!((20_000..=40_001).contains(&lab.ttl(CALLS)));
    assert_eq!(lab.ttl(LATCH), -2);
    assert_eq!(lab.delete(&call(3).known_until(until + 20_000).resent()), Deleted::Gone);
    assert!(lab.ttl(CALLS) > 40_001);
    assert_eq!(lab.remembered().len(), 3);
}

/// Of which no copy can come any more, 16 with each call that is remembered.
#[test]
fn calls_are_forgotten_a_few_at_a_time() {
    let mut lab = Latch::of(1_000);
    lab.checked = false;
    for n in 101..=200 {
        lab.count_down(&call(n));
    }
    let (key, past) = (lab.keys[CALLS].clone(), lab.past().to_string());
    for n in 101..=150 {
        lab.raw(&["ZADD", &key, "XX", &past, &call(n).id]);
    }
    // Calls that are not remembered leave this to other calls.
    assert_eq!(lab.set(&call(300), 5), Set::Exists(900));
    assert_eq!(lab.count_down(&call(160)), Counted::Count(900));
    let mut left = 101;
    assert_eq!(lab.remembered().len(), left);
    for (n, forgotten) in [(301, 16), (302, 16), (303, 16), (304, 2), (305, 0)] {
        lab.count_down(&call(n));
        left = left + 1 - forgotten;
        assert_eq!(lab.remembered().len(), left);
    }
    assert!((151..=200).all(|n| lab.count_down(&call(n)) == Counted::Count(895)));
}

/// A set and a deletion forget no more, however many calls there were.
#[test]
fn nothing_forgets_all_calls_at_once() {
    let mut lab = Latch::of(1);
    lab.count_down(&call(0));
    lab.checked = false;
    let key = lab.keys[CALLS].clone();
    let fill = "for n = 1, 20000 do redis.call('ZADD', KEYS[1], ARGV[1], 'c:' .. n) end return 0";
    lab.raw(&["EVAL", fill, "1", &key, "1"]);
    assert_eq!(lab.set(&call(1), 1), Set::Set);
    assert_eq!(lab.remembered().len(), 20_003 - 16);
    assert_eq!(lab.delete(&call(2)), Deleted::Deleted);
    assert_eq!(lab.remembered().len(), 20_004 - 32);
}
