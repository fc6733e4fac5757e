use super::*;
use crate::acquire::builder::{Acquire, TryAcquire};
use crate::context::tests::{Setup, setup};
use crate::guard::LockGuard;
use crate::protocol::kind::Kind;
use crate::source::Source;

const SECOND: Duration = Duration::from_secs(1);

type Choose = fn(Options) -> Options;

fn primitive(kind: Kind) -> Primitive {
    let Setup { context, .. } = setup();
    Primitive::new(&Source::new(context, None), kind, "name")
}

fn request(kind: Kind, amount: u32, wait: bool, choose: Choose) -> Result<Request> {
    let options = choose(Options::of_one(&primitive(kind), "lock", amount));
    options.request(options.first()?, wait)
}

/// The lease of the client.
fn own_lease(options: &Options) -> Duration {
    options.first().unwrap().primitive.context().config.lease
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
        (true, |options| Options { fair: false, ..options }),
        (false, |options| options),
        (true, |options| Options { fair: false, lease: Some(own_lease(&options)), ..options }),
        (false, |options| Options { fair: false, lease: Some(SECOND), ..options }),
        (false, |options| {
            let own = own_lease(&options);
            Options { fair: false, expires_after: Some(own), ..options }
        }),
        (false, |options| {
            let longer = own_lease(&options) * 2;
            Options { fair: false, at_most: Some(longer), ..options }
        }),
        (false, |options| Options { fair: false, replicas: Some(1), ..options }),
    ];
    for (n, (joins, choose)) in joins.into_iter().enumerate() {
        assert_eq!(request(Kind::Lock, 1, true, choose).unwrap().joins_cohort, joins, "{n}");
        assert!(!request(Kind::Lock, 1, false, choose).unwrap().joins_cohort, "a try, {n}");
    }
}

#[test]
fn readers_join_no_cohort() {
    let non_fair: Choose = |options| Options { fair: false, ..options };
    assert!(!request(Kind::ReadWrite, crate::protocol::limits::READ, true, non_fair).unwrap().joins_cohort);
    assert!(request(Kind::ReadWrite, crate::protocol::limits::WRITE, true, non_fair).unwrap().joins_cohort);
}

#[test]
fn choices_that_make_no_sense_are_refused() {
    let refused: [(bool, u32, Choose); 11] = [
        (false, 1, |options| options),
        (true, 0, |options| options),
        (true, 1, |options| Options { timeout: Some(Duration::ZERO), ..options }),
        (false, 1, |options| Options { timeout: Some(SECOND), ..options }),
        (true, 1, |options| Options { max_waiters: Some(0), ..options }),
        (false, 1, |options| Options { max_waiters: Some(1), ..options }),
        (true, 1, |options| Options { expires_after: Some(SECOND), lease: Some(SECOND), ..options }),
        (true, 1, |options| Options { expires_after: Some(SECOND), at_most: Some(SECOND), ..options }),
        (false, 1, |options| Options { lease: Some(SECOND), at_most: Some(SECOND), ..options }),
        (false, 1, |options| Options { at_most: Some(MIN_LEASE), ..options }),
        (true, 1, |options| Options { at_most: Some(MIN_LEASE - Duration::from_nanos(1)), ..options }),
    ];
    for (n, (refused, amount, choose)) in refused.into_iter().enumerate() {
        let kind = request(Kind::Lock, amount, true, choose).err().map(|error| error.kind());
        assert_eq!(kind, refused.then_some(ErrorKind::InvalidInput), "{n}");
    }
}
