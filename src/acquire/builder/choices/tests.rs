use super::*;
use crate::acquire::builder::{Acquire, TryAcquire};
use crate::context::tests::{Setup, setup};
use crate::hold::guard::LockGuard;
use crate::hold::owner::HoldSource;
use crate::protocol::kind::Kind;

const SECOND: Duration = Duration::from_secs(1);

type Choose = fn(Choices) -> Choices;

fn primitive(kind: Kind) -> Primitive {
    let Setup { context, .. } = setup();
    Primitive::new(&HoldSource::new(context), kind, "name")
}

fn request(kind: Kind, amount: u32, wait: bool, choose: Choose) -> Result<Request> {
    let options = Options::of_one(&primitive(kind), "lock", amount);
    Options { choices: choose(options.choices), ..options }.into_request(wait).map(|(_, request)| request)
}

/// The lease of the client.
fn own_lease() -> Duration {
    primitive(Kind::Lock).context().config.lease
}

#[test]
fn a_builder_shows_its_name_and_its_choices() {
    let primitive = primitive(Kind::Lock);
    let waits: Acquire<LockGuard> = Acquire::new(&primitive, "lock", 1).max_waiters(17);
    let tries: TryAcquire<LockGuard> = TryAcquire::new(&primitive, "try_lock", 1).acknowledged_by(17);
    for text in [format!("{waits:?}"), format!("{tries:?}")] {
        assert!(text.contains("\"name\"") && text.contains("17"), "{text}");
    }
}

/// The setters that the two have in common.
#[test]
fn both_builders_pass_their_choices_on() {
    let primitive = primitive(Kind::Lock);
    let acquire = || Acquire::<LockGuard>::new(&primitive, "lock", 1);
    let try_acquire = || TryAcquire::<LockGuard>::new(&primitive, "lock", 1);
    let renewed = acquire().lease(SECOND).hold_at_most(SECOND * 9).acknowledged_by(3);
    let fixed = acquire().expires_after(SECOND * 2);
    let tries = [
        try_acquire().lease(SECOND).hold_at_most(SECOND * 9).acknowledged_by(3),
        try_acquire().expires_after(SECOND * 2),
    ];
    assert_eq!([&renewed, &fixed].map(|it| format!("{it:?}")), tries.map(|it| format!("{it:?}")));
    let chosen = [renewed, fixed].map(|it| {
        let (_, request) = it.options.into_request(true).unwrap();
        (request.lease, request.renewed, request.at_most, request.replicas)
    });
    assert_eq!(chosen, [(SECOND, true, Some(SECOND * 9), 3), (SECOND * 2, false, None, 0)]);
}

#[test]
fn nothing_to_acquire_is_invalid_input() {
    let options = Options::of_several(&[], "acquire");
    let error = options.first().unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::InvalidInput, "acquire"));
    assert_eq!(options.executor().unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn non_fair_acquisitions_with_the_clients_lease_join_a_cohort() {
    let joins: [(bool, Choose); 7] = [
        (true, |choices| Choices { non_fair: true, ..choices }),
        (false, |choices| choices),
        (true, |choices| Choices { non_fair: true, ..choices.with_lease(own_lease(), false) }),
        (false, |choices| Choices { non_fair: true, ..choices.with_lease(SECOND, false) }),
        (false, |choices| Choices { non_fair: true, ..choices.with_lease(own_lease(), true) }),
        (false, |choices| Choices { non_fair: true, at_most: Some(own_lease() * 2), ..choices }),
        (false, |choices| Choices { non_fair: true, replicas: Some(1), ..choices }),
    ];
    for (n, (joins, choose)) in joins.into_iter().enumerate() {
        assert_eq!(request(Kind::Lock, 1, true, choose).unwrap().joins_cohort, joins, "{n}");
        assert!(!request(Kind::Lock, 1, false, choose).unwrap().joins_cohort, "a try, {n}");
    }
}

#[test]
fn retained_acquisitions_join_a_cohort_also_if_they_do_not_wait() {
    let retained: Choose = |choices| Choices { retained: Some(SECOND), non_fair: true, ..choices };
    for wait in [true, false] {
        let request = request(Kind::Lock, 1, wait, retained).unwrap();
        assert_eq!((request.joins_cohort, request.retained), (true, Some(SECOND)));
    }
    let writes = request(Kind::ReadWrite, crate::protocol::limits::WRITE, true, retained).unwrap();
    assert_eq!((writes.joins_cohort, writes.retained), (true, Some(SECOND)));
    // The last choice counts.
    let primitive = primitive(Kind::Lock);
    let acquire = || Acquire::<LockGuard>::new(&primitive, "lock", 1);
    for (acquire, expected) in
        [(acquire().fair().retained(SECOND), Some(SECOND)), (acquire().retained(SECOND).fair(), None)]
    {
        let (_, request) = acquire.options.into_request(true).unwrap();
        assert_eq!((request.retained, request.joins_cohort), (expected, expected.is_some()));
    }
}

#[test]
fn what_cannot_be_retained_is_refused() {
    let refused: [(bool, Kind, Choose); 10] = [
        (false, Kind::Lock, |choices| choices),
        (false, Kind::Lock, |choices| Choices { retained: Some(own_lease() / 3), ..choices }),
        (true, Kind::Lock, |choices| Choices { retained: Some(own_lease() / 3 + Duration::from_nanos(1)), ..choices }),
        (true, Kind::Lock, |choices| Choices { retained: Some(Duration::ZERO), ..choices }),
        (true, Kind::Lock, |choices| choices.with_lease(own_lease() * 2, false)),
        (true, Kind::Lock, |choices| choices.with_lease(own_lease(), true)),
        (true, Kind::Lock, |choices| Choices { at_most: Some(own_lease() * 2), ..choices }),
        (true, Kind::Lock, |choices| Choices { replicas: Some(1), ..choices }),
        (true, Kind::ReadWrite, |choices| choices),
        (true, Kind::Semaphore { limit: 1 }, |choices| choices),
    ];
    for (n, (refused, kind, choose)) in refused.into_iter().enumerate() {
        let options = Options::of_one(&primitive(kind), "lock", 1);
        let choices = choose(Choices { retained: Some(SECOND), non_fair: true, ..options.choices.clone() });
        for wait in [true, false] {
            let kind = Options { choices: choices.clone(), ..options.clone() }
                .into_request(wait)
                .err()
                .map(|error| error.kind());
            assert_eq!(kind, refused.then_some(ErrorKind::InvalidInput), "{n}");
        }
    }
}

#[test]
fn readers_join_no_cohort() {
    let non_fair: Choose = |choices| Choices { non_fair: true, ..choices };
    assert!(!request(Kind::ReadWrite, crate::protocol::limits::READ, true, non_fair).unwrap().joins_cohort);
    assert!(request(Kind::ReadWrite, crate::protocol::limits::WRITE, true, non_fair).unwrap().joins_cohort);
}

#[test]
fn choices_that_make_no_sense_are_refused() {
    let refused: [(bool, u32, Choose); 13] = [
        (false, 1, |choices| choices),
        (true, 0, |choices| choices),
        (true, 1, |choices| Choices { timeout: Some(Duration::ZERO), ..choices }),
        (false, 1, |choices| Choices { timeout: Some(SECOND), ..choices }),
        (true, 1, |choices| Choices { max_waiters: Some(0), ..choices }),
        (false, 1, |choices| Choices { max_waiters: Some(1), ..choices }),
        (true, 1, |choices| choices.with_lease(SECOND, true).with_lease(SECOND, false)),
        (true, 1, |choices| choices.with_lease(SECOND, false).with_lease(SECOND, true)),
        (false, 1, |choices| choices.with_lease(SECOND, true).with_lease(SECOND * 2, true)),
        (true, 1, |choices| Choices { at_most: Some(SECOND), ..choices.with_lease(SECOND, true) }),
        (false, 1, |choices| Choices { at_most: Some(SECOND), ..choices.with_lease(SECOND, false) }),
        (false, 1, |choices| Choices { at_most: Some(MIN_LEASE), ..choices }),
        (true, 1, |choices| Choices { at_most: Some(MIN_LEASE - Duration::from_nanos(1)), ..choices }),
    ];
    for (n, (refused, amount, choose)) in refused.into_iter().enumerate() {
        let kind = request(Kind::Lock, amount, true, choose).err().map(|error| error.kind());
        assert_eq!(kind, refused.then_some(ErrorKind::InvalidInput), "{n}");
    }
}
