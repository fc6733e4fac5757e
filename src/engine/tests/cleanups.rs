//! Clean-ups begin, and the client that closes hears of the end of the last one.

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

/// Until then, the watchdog has nothing to do about it.
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
