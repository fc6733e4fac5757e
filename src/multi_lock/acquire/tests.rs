use super::*;
use crate::acquire::builder::choices::Part;
use crate::context::tests::{Answer, Setup, finish, poll, setup};
use crate::handle::Primitive;
use crate::mutex::lock;
use crate::owned::HoldSource;
use crate::protocol::kind::Kind;

fn options(setup: &Setup) -> Options {
    let source = HoldSource::new(setup.context.clone(), None);
    let part = |name| {
        let primitive = Primitive::new(&source, Kind::Lock, name);
        Part { primitive, amount: 1 }
    };
    Options::of_several(&["b", "c", "a"].map(part), "acquire")
}

fn answer(setup: &Setup, answers: impl IntoIterator<Item = Answer>) {
    lock(&setup.connection.answers).extend(answers);
}

/// The names of the background clean-ups, in their order.
fn cleaned_up(setup: &Setup) -> Vec<String> {
    let work = setup.context.engine.work(setup.context.now());
    work.cleanups.into_iter().map(|(_, cleanup)| cleanup.keys.name.to_string()).collect()
}

#[test]
fn holds_end_in_the_reverse_order() {
    let setup = setup();
    answer(&setup, [Answer::Granted, Answer::Granted, Answer::Granted]);
    let holds = finish(acquire_all(&options(&setup), true)).unwrap().unwrap();
    assert_eq!(holds.iter().map(|owned| &*owned.hold.keys.name).collect::<Vec<_>>(), ["a", "b", "c"]);
    // A second guard keeps all of the holds.
    let shared = holds.clone();
    drop(holds);
    assert!(cleaned_up(&setup).is_empty());
    drop(shared);
    assert_eq!(cleaned_up(&setup), ["c", "b", "a"]);
}

#[test]
fn a_dropped_wait_is_cancelled_before_what_is_held() {
    let setup = setup();
    answer(&setup, [Answer::Granted, Answer::Granted, Answer::Queued]);
    let options = options(&setup);
    let mut waiting = Box::pin(acquire_all(&options, true));
    for _ in 0..20 {
        assert!(poll(waiting.as_mut()).is_pending());
    }
    assert!(cleaned_up(&setup).is_empty());
    drop(waiting);
    assert_eq!(cleaned_up(&setup), ["c", "b", "a"]);
}
