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
