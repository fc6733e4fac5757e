//! The start of clean-ups, and the event at the end of the last one, which a closing client waits for.

use std::pin::pin;

use super::*;

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
        setup.engine.cleanup_done(*n);
    }
    assert!(cleaned.now_or_never().is_some());
}

#[test]
fn after_a_gap_the_latest_releases_are_repeated_once() {
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
    assert_eq!(repeated(setup.now), [0; 0]);
    release("a");
    assert_eq!(repeated(setup.now + LEASE), [0; 0], "it has expired in Redis");
    let all: Vec<u64> = (0..1_000).map(|n| release(&n.to_string())).collect();
    let latest = repeated(setup.now);
    assert!((32..=64).contains(&latest.len()), "{}", latest.len());
    assert_eq!(latest, all[1_000 - latest.len()..]);
}

/// Before that, the watchdog has nothing to do about it.
#[test]
fn the_last_clean_up_wakes_a_watchdog_that_may_end() {
    for ending in [false, true] {
        let setup = setup();
        setup.engine.abandon(setup.open(&keys("a")), setup.now);
        let work = setup.engine.work(setup.now);
        if ending {
            setup.engine.end();
        }
        let looks = |change: &dyn Fn()| {
            let listener = setup.engine.listen();
            change();
            listener.now_or_never().is_some()
        };
        assert!(!looks(&|| setup.engine.gap(setup.now)));
        assert_eq!(looks(&|| setup.engine.cleanup_done(work.cleanups[0].0)), ending);
    }
}
