use std::future::ready;

use futures::FutureExt;

use super::*;
use crate::acquire::builder::choices::Part;
use crate::context::tests::{Answer, LEASE, Setup, finish, setup};
use crate::engine::lease::Loss;
use crate::error::ErrorKind;
use crate::handle::Primitive;
use crate::hold::owner::HoldSource;
use crate::mutex::lock as locked;
use crate::protocol::kind::Kind;

/// A guard of a semaphore's permit and of two locks, the second of which was granted a second later.
fn guard() -> (Setup, MultiGuard) {
    let setup = setup();
    let source = HoldSource::new(setup.context.clone());
    let parts = [(Kind::Semaphore { limit: 8 }, "s"), (Kind::Lock, "b"), (Kind::Lock, "a")]
        .map(|(kind, name)| Part { primitive: Primitive::new(&source, kind, name), amount: 1 });
    let late = Answer::After(Duration::from_secs(1));
    locked(&setup.connection.answers).extend([Answer::Granted, late, Answer::Granted]);
    let acquired = finish(MultiGuard::acquire(Options::of_several(&parts, "acquire"), true, Ok));
    (setup, acquired.unwrap().unwrap())
}

#[test]
fn what_a_guard_of_several_holds_says_of_them() {
    let (setup, guard) = guard();
    assert_eq!((MultiGuard::name(&guard), guard.names().collect::<Vec<_>>()), ("a, b, s", vec!["a", "b", "s"]));
    assert!(MultiGuard::is_valid(&guard));
    let first = guard.holds[0].hold.remaining(setup.context.now());
    assert_eq!(MultiGuard::remaining(&guard), first, "the first of them ends first");
    assert!(first < guard.holds[2].hold.remaining(setup.context.now()));
    let shared = guard.share();
    assert_eq!((MultiGuard::name(&shared), shared.names().count()), ("a, b, s", 3));
    let shown = format!("{guard:?}");
    assert!(shown.contains("MultiGuard") && shown.contains("remaining"), "{shown}");
}

/// The watchdog has not looked at the clock since.
#[test]
fn a_loss_counts_before_it_is_signalled() {
    let (setup, guard) = guard();
    assert_eq!(guard.loss(), None);
    assert!(finish(MultiGuard::protect(&guard, ready(()))).is_ok());
    setup.executor.advance(LEASE);
    assert!(!MultiGuard::is_valid(&guard) && MultiGuard::remaining(&guard).is_zero());
    assert_eq!(guard.loss().map(|loss| loss.name().to_owned()).as_deref(), Some("a"));
    let error = finish(MultiGuard::protect(&guard, ready(()))).unwrap_err();
    assert_eq!((error.kind(), error.name()), (ErrorKind::Lost, Some("a")));
    assert!(MultiGuard::lost(&guard).now_or_never().is_none());
}

#[test]
fn a_loss_is_signalled_with_its_name() {
    let (_setup, guard) = guard();
    let signal = MultiGuard::lost_signal(&guard);
    guard.holds[1].hold.lose(Loss::Gone);
    let lost = finish(guard.first_lost());
    assert_eq!((lost.name(), lost.loss()), ("b", Loss::Gone));
    assert!(signal.is_lost());
}
