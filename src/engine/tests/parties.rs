//! Parties of a barrier that have left, for which the next ones wait.

use std::pin::pin;

use super::*;
use crate::wakers::woken::Woken;

/// Otherwise each clean-up would wake all parties that wait, and each of them would look at the tables.
#[test]
fn parties_wait_for_the_last_clean_up_of_their_name() {
    let setup = setup();
    let parties = |name| Arc::new(Keys::new("p", Kind::Barrier { parties: 2, keep: 0 }, name).unwrap());
    for name in ["a", "b", "a"] {
        setup.engine.abandon(setup.open(&parties(name)), setup.now);
    }
    let (woken, a) = (Arc::new(Woken::default()), parties("a"));
    let mut left = pin!(setup.engine.all_have_left(&a));
    let mut is_over = || left.as_mut().poll(&mut Context::from_waker(&woken.waker())).is_ready();
    assert!(!is_over());
    let work = setup.engine.work(setup.now);
    let [(first, _), (other, _), (last, _)] = work.cleanups[..] else { panic!("{:?}", work.cleanups) };
    setup.engine.cleanup_again(first, setup.now);
    let again = setup.engine.work(setup.now).cleanups[0].0;
    for (n, seen) in [(last, 0), (other, 1), (again, 2)] {
        setup.engine.cleanup_done(n, false);
        assert_eq!(woken.count(), seen, "{n}");
        assert_eq!(is_over(), n == again);
    }
}
