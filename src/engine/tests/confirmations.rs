//! Grants that wait for replicas.

use std::pin::pin;

use super::*;
use crate::engine::confirmations::Confirmation;
use crate::wakers::woken::Woken;

/// The result, if there is one.
fn done(confirming: &mut (impl Future<Output = Confirmation> + Unpin)) -> Option<Confirmation> {
    confirming.now_or_never()
}

#[test]
fn the_watchdog_gets_each_hold_once_and_its_caller_the_outcome() {
    let setup = setup();
    let (one, other) = (setup.holds(&keys("one")), setup.holds(&keys("other")));
    let mut first = Box::pin(setup.engine.confirm(&one).done());
    let mut second = Box::pin(setup.engine.confirm(&other).done());
    assert_eq!((done(&mut first), done(&mut second)), (None, None));
    let asked: Vec<_> = setup.engine.work(setup.now).confirm.iter().map(|hold| hold.id).collect();
    assert_eq!(asked, [one.id, other.id]);
    assert!(setup.engine.work(setup.now).confirm.is_empty());
    setup.engine.confirmed(&one, Confirmation::TooFew(1));
    assert_eq!((done(&mut first), done(&mut second)), (Some(Confirmation::TooFew(1)), None));
    setup.engine.confirmed(&other, Confirmation::Acknowledged);
    assert_eq!(done(&mut second), Some(Confirmation::Acknowledged));
    // A hold whose caller asks again is asked about again.
    let mut again = Box::pin(setup.engine.confirm(&one).done());
    assert_eq!((setup.engine.work(setup.now).confirm.len(), done(&mut again)), (1, None));
}

#[test]
fn a_caller_that_leaves_is_forgotten() {
    let setup = setup();
    let hold = setup.holds(&keys("one"));
    drop(setup.engine.confirm(&hold));
    assert!(setup.engine.work(setup.now).confirm.is_empty(), "asked about for no caller");
    // A result without a caller is not kept for the next caller.
    setup.engine.confirmed(&hold, Confirmation::Acknowledged);
    assert_eq!(done(&mut Box::pin(setup.engine.confirm(&hold).done())), None);
    drop(setup.engine.confirm(&hold));
    assert_eq!(done(&mut Box::pin(setup.engine.confirm(&hold).done())), None);
}

#[test]
fn closing_and_the_end_of_the_runtime_end_the_wait() {
    for dies in [true, false] {
        let setup = setup();
        let hold = setup.holds(&keys("one"));
        let mut before = Box::pin(setup.engine.confirm(&hold).done());
        assert_eq!(done(&mut before), None);
        if dies {
            setup.engine.die(setup.now);
        } else {
            setup.engine.close(setup.now);
        }
        assert_eq!(done(&mut before), Some(Confirmation::Closed));
        // No watchdog would ask the replicas any more.
        assert_eq!(done(&mut Box::pin(setup.engine.confirm(&hold).done())), Some(Confirmation::Closed));
    }
}

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
    assert!(a_done.as_mut().poll(&mut Context::from_waker(&woken.waker())).is_pending());
    assert!(b_done.as_mut().now_or_never().is_none());
    setup.engine.confirmed(&a, Confirmation::TooFew(1));
    assert_eq!(woken.count(), 1);
    assert_eq!(a_done.now_or_never(), Some(Confirmation::TooFew(1)));
    assert!(b_done.now_or_never().is_none());
}
