//! Acquisitions of what a client keeps idle, this one or another.

use super::*;
use crate::error::ErrorKind;

const TIME: Duration = Duration::from_secs(1);

fn retained(setup: &Setup) -> Request {
    Request { retained: Some(TIME), ..setup.request(None) }
}

/// The first request may have queued up, and been granted when others stood behind it.
#[test]
fn a_hold_that_the_second_request_finds_is_not_kept() {
    for (answers, kept) in [(vec![Answer::Granted], true), (vec![Answer::Unreachable, Answer::Granted], false)] {
        let setup = setup();
        let calls = answers.len();
        setup.answer(answers);
        let owned = finish(setup.acquire(retained(&setup))).unwrap().unwrap();
        assert_eq!(setup.calls(), calls);
        drop(owned);
        assert_eq!(setup.cleanups(), usize::from(!kept), "after {calls} requests");
        assert_eq!(setup.context.engine.stats().held, 0);
    }
}

/// It waits as an acquisition does, for as long as it was told.
#[test]
fn a_try_waits_for_a_hold_that_another_client_keeps() {
    let cases: [(Answer, &[Duration], bool); 4] = [
        (Answer::Busy, &[], false),
        (Answer::Retained, &[Duration::ZERO], false),
        (Answer::Retained, &[TIME], true),
        (Answer::Retained, &[9 * TIME, TIME], true),
    ];
    for (n, (answer, limits, waits)) in cases.into_iter().enumerate() {
        let setup = setup();
        setup.answer([answer, Answer::Queued]);
        let for_retained = limits.first().copied().unwrap_or(TIME);
        let request = Request {
            wait: false,
            joins_cohort: false,
            for_retained,
            timeout: limits.get(1).copied(),
            ..setup.request(None)
        };
        let began = setup.context.now();
        let tried = finish(setup.acquire(request)).unwrap();
        assert!(tried.is_none(), "{n}");
        let took = setup.context.now() - began;
        assert_eq!((setup.calls(), took), if waits { (2, TIME) } else { (1, Duration::ZERO) }, "{n}");
        assert_eq!(setup.cleanups(), usize::from(waits), "its ticket is cancelled, {n}");
    }
}

#[test]
fn a_try_that_waits_gets_the_hold_or_the_error() {
    for (answer, expected) in [(Answer::Granted, None), (Answer::OverLimit, Some(ErrorKind::OverLimit))] {
        let setup = setup();
        setup.answer([Answer::Retained, answer]);
        let request = Request { wait: false, joins_cohort: false, for_retained: TIME, ..setup.request(None) };
        let tried = finish(setup.acquire(request));
        assert_eq!(tried.as_ref().err().map(crate::error::Error::kind), expected);
        assert!(expected.is_some() || tried.unwrap().is_some());
    }
}
