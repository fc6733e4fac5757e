//! Holds that wait for replicas.

use std::pin::pin;
use std::sync::atomic::Ordering;

use futures::task::waker;

use super::endings::Woken;
use super::*;
use crate::engine::confirmations::Confirmation;

fn confirming(setup: &Setup) -> Vec<AttemptId> {
    setup.engine.work(setup.now).confirm.iter().map(|hold| hold.id).collect()
}

#[test]
fn the_watchdog_is_told_once_of_a_hold_that_waits() {
    let setup = setup();
    let (a, b) = (setup.holds(&keys("a")), setup.holds(&keys("b")));
    let listener = setup.engine.listen();
    let (_a, b_waits) = (setup.engine.confirm(&a), setup.engine.confirm(&b));
    assert!(listener.now_or_never().is_some());
    // The caller is gone before the watchdog has looked.
    drop(b_waits);
    assert_eq!(confirming(&setup), [a.id]);
    assert_eq!(confirming(&setup), []);
    let listener = setup.engine.listen();
    setup.engine.forget(setup.open(&keys("c")));
    assert!(listener.now_or_never().is_none(), "nothing was added");
}

#[test]
fn a_confirmation_is_for_the_hold_that_it_names() {
    let setup = setup();
    let (a, b) = (setup.holds(&keys("a")), setup.holds(&keys("b")));
    let (mut a_done, mut b_done) = (pin!(setup.engine.confirm(&a).done()), pin!(setup.engine.confirm(&b).done()));
    let woken = Arc::<Woken>::default();
    assert!(a_done.as_mut().poll(&mut Context::from_waker(&waker(woken.clone()))).is_pending());
    assert!(b_done.as_mut().now_or_never().is_none());
    setup.engine.confirmed(&a, Confirmation::TooFew(1));
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    assert_eq!(a_done.now_or_never(), Some(Confirmation::TooFew(1)));
    assert!(b_done.now_or_never().is_none());
}
