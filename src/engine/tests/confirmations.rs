//! Grants that wait for replicas.

use super::*;
use crate::engine::confirmations::Confirmation;

/// The outcome, if there is one.
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
    // One that asks again is asked about again.
    let mut again = Box::pin(setup.engine.confirm(&one).done());
    assert_eq!((setup.engine.work(setup.now).confirm.len(), done(&mut again)), (1, None));
}

#[test]
fn a_caller_that_leaves_is_forgotten() {
    let setup = setup();
    let hold = setup.holds(&keys("one"));
    drop(setup.engine.confirm(&hold));
    assert!(setup.engine.work(setup.now).confirm.is_empty(), "asked about for no caller");
    // An outcome for no caller is not kept for the next one.
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
        // No watchdog would ask for it.
        assert_eq!(done(&mut Box::pin(setup.engine.confirm(&hold).done())), Some(Confirmation::Closed));
    }
}
