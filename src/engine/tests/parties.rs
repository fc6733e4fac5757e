//! Parties of a barrier that have left, for which the next ones wait.

use std::pin::pin;

use super::*;
use crate::tuning::{MOST_CALLS, MOST_OVERDUE, MOST_OVERDUE_CALLS};
use crate::wakers::woken::Woken;

fn parties(name: &str) -> Arc<Keys> {
    Arc::new(Keys::new("p", Kind::Barrier { parties: 2, keep: 0 }, name).unwrap())
}

/// Otherwise each clean-up would wake all parties that wait, and each of them would look at the tables.
#[test]
fn parties_wait_for_the_last_clean_up_of_their_name() {
    let setup = setup();
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

/// The server does not answer, and each party waits at another barrier.
#[test]
fn a_client_keeps_so_many_clean_ups_of_parties_and_no_more() {
    let setup = setup();
    let names: Vec<Arc<Keys>> = (0..MOST_OVERDUE + 1).map(|n| parties(&n.to_string())).collect();
    names.iter().for_each(|keys| setup.engine.abandon(setup.open(keys), setup.now));
    let later = setup.now + LEASE;
    for _ in 0..names.len().div_ceil(MOST_CALLS) {
        let work = setup.engine.work(later);
        assert!(work.cleanups.len() > MOST_OVERDUE_CALLS, "those that are not overdue go first");
        work.cleanups.iter().for_each(|(n, _)| setup.engine.cleanup_again(*n, later));
    }
    let has_left = |keys: &Keys| pin!(setup.engine.all_have_left(keys)).now_or_never().is_some();
    assert_eq!(names.iter().filter(|keys| has_left(keys)).count(), 1);
    assert!(has_left(names.last().unwrap()));
    let work = setup.engine.work(later);
    assert_eq!((work.cleanups.len(), work.is_capped), (MOST_OVERDUE_CALLS, true));
    work.cleanups.iter().for_each(|(n, _)| setup.engine.cleanup_done(*n, false));
    assert_eq!(names.iter().filter(|keys| has_left(keys)).count(), 1 + MOST_OVERDUE_CALLS);
    assert_eq!(setup.engine.die(later).len(), MOST_OVERDUE - MOST_OVERDUE_CALLS);
}
