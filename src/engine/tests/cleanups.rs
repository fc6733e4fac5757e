//! The start of clean-ups, and the event at the end of the last one, which a closing client waits for.

use std::pin::pin;

use super::*;
use crate::protocol::message::Message;
use crate::tuning::MOST_CALLS;

#[test]
fn a_clean_up_wakes_the_watchdog() {
    let setup = setup();
    let id = setup.open(&keys("a"));
    let listener = setup.engine.listen();
    setup.engine.abandon(id, setup.now);
    assert!(listener.now_or_never().is_some());
}

#[test]
fn the_last_clean_up_wakes_a_client_that_closes() {
    let setup = setup();
    for name in ["a", "b"] {
        setup.engine.abandon(setup.open(&keys(name)), setup.now);
    }
    let work = setup.engine.work(setup.now);
    let mut cleaned = pin!(setup.engine.cleaned());
    for (n, _) in &work.cleanups {
        assert!(cleaned.as_mut().now_or_never().is_none());
        setup.engine.cleanup_done(*n, false);
    }
    assert!(cleaned.now_or_never().is_some());
}

#[test]
fn more_clean_ups_than_may_be_under_way_are_capped() {
    let setup = setup();
    for _ in 0..=MOST_CALLS {
        setup.engine.abandon(setup.open(&keys("a")), setup.now);
    }
    let work = setup.engine.work(setup.now);
    assert_eq!((work.cleanups.len(), work.is_capped), (MOST_CALLS, true));
    assert!(setup.engine.work(setup.now).is_capped, "none has ended");
    setup.engine.cleanup_done(work.cleanups[0].0, false);
    let work = setup.engine.work(setup.now);
    assert_eq!((work.cleanups.len(), work.is_capped), (1, false));
}

#[test]
fn after_each_gap_the_latest_releases_are_repeated() {
    let setup = setup();
    let release = |name: &str| {
        let hold = setup.holds(&keys(name));
        let _ending = setup.engine.ending(&hold, setup.now);
        setup.engine.release(&hold, setup.now);
        hold.id.n
    };
    let repeated = |now: Instant| {
        setup.engine.gap(now);
        let work = setup.engine.work(now);
        setup.answer(&work);
        work.cleanups.iter().map(|(_, cleanup)| cleanup.ticket.id.n).collect::<Vec<_>>()
    };
    // The last release of each name.
    let [_, last, other] = ["a", "a", "b"].map(release);
    let dropped = setup.holds(&keys("c"));
    setup.engine.release_later(&dropped, setup.now);
    let abandoned = setup.open(&keys("d"));
    setup.engine.abandon(abandoned, setup.now);
    setup.answer(&setup.engine.work(setup.now));
    assert_eq!(repeated(setup.now), [last, other, dropped.id.n, abandoned.n]);
    // A gap begins and ends an interruption, and a server may be replaced twice. What the first of them repeats may
    // reach the wrong server.
    assert_eq!(repeated(setup.now), [last, other, dropped.id.n, abandoned.n]);
    let all: Vec<u64> = (0..1_000).map(|n| release(&n.to_string())).collect();
    let latest = repeated(setup.now);
    assert!((32..=64).contains(&latest.len()), "{}", latest.len());
    assert_eq!(latest, all[1_000 - latest.len()..]);
    release("a");
    assert_eq!(repeated(setup.now + LEASE), [0; 0], "it has expired in Redis");
}

/// The answer may be that of the server before the gap, read before the connection to it was left.
#[test]
fn what_is_ended_while_the_server_may_have_changed_is_repeated() {
    let setup = setup();
    let (held, abandoned) = (setup.holds(&keys("a")), setup.open(&keys("b")));
    let ending = setup.engine.ending(&held, setup.now);
    setup.engine.release(&held, setup.now);
    setup.engine.abandon(abandoned, setup.now);
    let under_way = setup.engine.work(setup.now);
    assert_eq!(under_way.cleanups.len(), 1);
    let cleaned = || {
        let work = setup.engine.work(setup.now);
        setup.answer(&work);
        work.cleanups.iter().map(|(_, cleanup)| (cleanup.ticket.id.n, cleanup.is_repeated)).collect::<Vec<_>>()
    };
    let gap = setup.now + Duration::from_millis(1);
    setup.engine.gap(gap);
    assert_eq!(cleaned(), []);
    drop(ending);
    assert_eq!(cleaned(), [(held.id.n, true)]);
    setup.answer(&under_way);
    assert_eq!(cleaned(), [(abandoned.n, true)]);
    // Those that begin after it are not.
    let later = gap + Duration::from_millis(1);
    let held = setup.holds(&keys("a"));
    let ending = setup.engine.ending(&held, later);
    setup.engine.abandon(setup.open(&keys("b")), later);
    assert_eq!(cleaned().len(), 1);
    drop(ending);
    assert_eq!(cleaned(), []);
}

/// A server that has not heard of these ends may have any of the holds, and tickets that it turns into holds.
#[test]
fn what_was_ended_before_is_ended_again_when_the_server_names_it() {
    let setup = setup();
    let ids: Vec<AttemptId> = (0..600)
        .map(|_| {
            let hold = setup.holds(&keys("a"));
            let _ending = setup.engine.ending(&hold, setup.now);
            setup.engine.release(&hold, setup.now);
            hold.id
        })
        .collect();
    let held = setup.holds(&keys("a"));
    let waiting = setup.open(&keys("a"));
    let cleaned = || {
        let work = setup.engine.work(setup.now);
        setup.answer(&work);
        work.cleanups.iter().map(|(_, cleanup)| cleanup.ticket.id.n).collect::<Vec<_>>()
    };
    assert_eq!(cleaned(), [0; 0]);
    let others = AttemptId { client: uuid::Uuid::from_u128(7), n: ids[590].n };
    setup.engine.end_again(vec![ids[590], held.id, waiting, others], setup.now);
    assert_eq!(cleaned(), [ids[590].n]);
    for id in [ids[100], ids[100], held.id, others] {
        setup.engine.deliver(Message::Granted { id, token: held.token(), at: 1 }, setup.now);
    }
    assert_eq!(cleaned(), [ids[100].n, ids[100].n], "it is ended as often as it is granted");
    assert!(held.deadline().is_some());
    // Not for ever.
    (0..1024).for_each(|n| {
        let hold = setup.holds(&keys(&n.to_string()));
        let _ending = setup.engine.ending(&hold, setup.now);
    });
    setup.engine.end_again(vec![ids[590]], setup.now);
    assert_eq!(cleaned(), [0; 0]);
}

/// The answer may be that of a server that was replaced, and the message that of the new one.
#[test]
fn what_is_granted_while_it_is_ended_is_ended_again_unless_the_answer_takes_a_hold_away() {
    let setup = setup();
    let granted = |id| {
        setup.engine.deliver(Message::Granted { id, token: Token::new(9), at: 1 }, setup.now + LEASE / 2);
    };
    let cleaned = |was_held| {
        let work = setup.engine.work(setup.now);
        work.cleanups.iter().for_each(|(n, _)| setup.engine.cleanup_done(*n, was_held));
        let shown = |cleanup: &Cleanup| (cleanup.ticket.id.n, cleanup.is_repeated, cleanup.until);
        work.cleanups.iter().map(|(_, cleanup)| shown(cleanup)).collect::<Vec<_>>()
    };
    // The hold lasts longer than the ticket would have.
    let later = setup.now + LEASE / 2;
    let ended_again = |n| vec![(n, true, later + LEASE)];
    for was_held in [false, true] {
        let abandoned = setup.open(&keys("a"));
        setup.engine.abandon(abandoned, setup.now);
        let under_way = setup.engine.work(setup.now);
        granted(abandoned);
        assert_eq!(cleaned(false), [], "not before the answer");
        setup.engine.cleanup_done(under_way.cleanups[0].0, was_held);
        assert_eq!(cleaned(true), if was_held { vec![] } else { ended_again(abandoned.n) });
        assert_eq!(cleaned(false), [], "once");
    }
    // A caller's own release.
    let held = setup.holds(&keys("b"));
    let ending = setup.engine.ending(&held, setup.now);
    setup.engine.release(&held, setup.now);
    granted(held.id);
    assert_eq!(cleaned(false), []);
    drop(ending);
    assert_eq!(cleaned(false), ended_again(held.id.n));
}

/// Before that, the watchdog has nothing to do about it.
#[test]
fn the_last_clean_up_wakes_a_watchdog_that_may_end() {
    for ending in [false, true] {
        let setup = setup();
        setup.engine.gap(setup.now);
        setup.engine.abandon(setup.open(&keys("a")), setup.now);
        let work = setup.engine.work(setup.now);
        if ending {
            setup.engine.end(setup.now);
        }
        let looks = |change: &dyn Fn()| {
            let listener = setup.engine.listen();
            change();
            listener.now_or_never().is_some()
        };
        assert_eq!(looks(&|| setup.engine.cleanup_done(work.cleanups[0].0, false)), ending);
    }
}

/// A hold of five units.
fn holds_five(setup: &Setup) -> Arc<Hold> {
    let id = setup.engine.open(&keys("a"), 5, LEASE, setup.now).unwrap();
    setup.engine.hold(id, 5, Token::new(7), Term::Renewed, setup.now + LEASE, setup.now).unwrap()
}

/// The server may be another one, that has not heard of it, whatever the client has ended since.
#[test]
fn the_parts_of_living_holds_are_given_back_again_after_each_gap() {
    let setup = setup();
    let (held, whole) = (holds_five(&setup), holds_five(&setup));
    let cleaned = || {
        let work = setup.engine.work(setup.now);
        setup.answer(&work);
        let shown = |(_, cleanup): &(u64, Cleanup)| (cleanup.ticket.id.n, cleanup.ticket.rest);
        work.cleanups.iter().map(shown).collect::<Vec<_>>()
    };
    let all = held.amount;
    assert!(held.units.end(0).is_none() && held.units.end(all).is_none(), "nothing, and the last part");
    assert_eq!((held.units.end(1), held.units.end(2)), (Some(all - 1), Some(all - 3)));
    setup.engine.give_back_later(&held, all - 3, setup.now);
    assert_eq!(cleaned(), [(held.id.n, all - 3)]);
    {
        let _ending = setup.engine.ending(&whole, setup.now);
        setup.engine.release(&whole, setup.now);
    }
    for _ in 0..2 {
        setup.engine.gap(setup.now);
        assert_eq!(cleaned(), [(whole.id.n, 0), (held.id.n, all - 3)]);
        // The server names the hold, which is not ended by that.
        setup.engine.end_again(vec![held.id], setup.now);
        assert_eq!(cleaned(), []);
    }
    {
        let _ending = setup.engine.ending(&held, setup.now);
        setup.engine.release(&held, setup.now);
    }
    setup.engine.gap(setup.now);
    assert_eq!(cleaned(), [(held.id.n, 0)], "the last release of the name, and no part any more");
}

/// The rest was kept in Redis, so the server names the hold at each look.
#[test]
fn a_part_of_a_kept_hold_is_not_given_back_again_and_again() {
    let setup = setup();
    let hold = holds_five(&setup);
    let rest = hold.units.end(1).unwrap();
    setup.engine.give_back_later(&hold, rest, setup.now);
    assert!(setup.engine.leave_in_redis(&hold, setup.now));
    let under_way = setup.engine.work(setup.now);
    setup.engine.gap(setup.now);
    setup.engine.end_again(vec![hold.id], setup.now);
    setup.answer(&under_way);
    setup.engine.end_again(vec![hold.id], setup.now);
    assert!(setup.engine.work(setup.now).cleanups.is_empty());
}

/// The server has not answered for longer than a lease, and the hold is kept by another part then.
#[test]
fn a_part_of_a_hold_that_is_kept_late_is_given_back_for_a_lease_more() {
    let setup = setup();
    let hold = holds_five(&setup);
    let rest = hold.units.end(1).unwrap();
    setup.engine.give_back_later(&hold, rest, setup.now);
    let (n, _) = setup.engine.work(setup.now).cleanups.remove(0);
    let later = setup.now + LEASE * 3;
    hold.extend(later + LEASE, setup.now);
    setup.engine.cleanup_again(n, later);
    assert!(setup.engine.leave_in_redis(&hold, later));
    hold.end(later);
    let (_, cleanup) = setup.engine.work(later).cleanups.remove(0);
    assert_eq!([LEASE / 2, LEASE].map(|time| cleanup.is_over(later + time)), [false, true]);
}

/// What a watchdog that is dropped leaves to the good-bye: a part, and not the whole hold.
#[test]
fn a_part_is_left_to_the_good_bye_as_a_part() {
    let setup = setup();
    let hold = setup.holds(&keys("a"));
    assert!(setup.engine.leave_in_redis(&hold, setup.now));
    setup.engine.give_back_later(&hold, 2, setup.now);
    let left = setup.engine.die(setup.now);
    assert_eq!(left.iter().map(|cleanup| cleanup.ticket.rest).collect::<Vec<_>>(), [2]);
}
