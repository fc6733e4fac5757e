//! When the label of a client is stored and removed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};

use super::lab::labelled;
use super::*;
use crate::connection::Arg;

const MINUTE: Duration = Duration::from_secs(60);

/// The lives that the calls asked for, in milliseconds.
type Lives = Arc<Mutex<Vec<u64>>>;

/// A server that does as `answer` says.
fn setup_of(answer: impl Fn() -> Result<Reply, ConnectionError> + Send + Sync + 'static) -> (Setup, Lives) {
    let lives = Lives::default();
    let seen = lives.clone();
    let setup = labelled(
        "web-7",
        Arc::new(move |call| {
            assert_eq!(call.script.name(), "client_label");
            let [_, Arg::Number(life), _, Arg::Text("web-7")] = call.args else { panic!("{:?}", call.args) };
            lock(&seen).push(*life);
            answer()
        }),
    );
    (setup, lives)
}

fn stored() -> Result<Reply, ConnectionError> {
    Ok(Reply::Array(vec![Reply::Integer(1)]))
}

#[test]
fn a_label_is_stored_three_times_in_its_life() {
    let (mut setup, lives) = setup_of(stored);
    setup.run(MINUTE);
    assert_eq!(lock(&lives)[..], [15 * 60_000]);
    // Up to half a minute earlier than after a third, so that clients do not store together.
    setup.run(13 * MINUTE);
    assert_eq!(lock(&lives)[..], [15 * 60_000; 3]);
    setup.run(MINUTE + Duration::from_secs(1));
    assert_eq!(lock(&lives)[..], [15 * 60_000; 4]);
}

#[test]
fn a_failure_that_passes_is_followed_by_a_short_pause() {
    let failures = Mutex::new(0);
    let (mut setup, lives) = setup_of(move || {
        *lock(&failures) += 1;
        if *lock(&failures) <= 4 { Err(refusal()) } else { stored() }
    });
    // Pauses of about 1, 2, 4 and 8 s.
    setup.run(Duration::from_secs(8));
    assert!((3..=5).contains(&lock(&lives).len()), "{}", lock(&lives).len());
    setup.run(MINUTE);
    assert_eq!(lock(&lives).len(), 5);
    setup.run(5 * MINUTE);
    assert_eq!(lock(&lives).len(), 6);
}

#[test]
fn a_refusal_that_stays_is_not_repeated_before_its_time() {
    let (mut setup, lives) = setup_of(|| Err(ConnectionError::refused("NOPERM no")));
    setup.run(4 * MINUTE);
    assert_eq!(lock(&lives).len(), 1);
    setup.run(MINUTE);
    assert_eq!(lock(&lives).len(), 2);
}

#[test]
fn the_end_of_the_client_removes_its_label() {
    let (mut setup, lives) = setup_of(stored);
    setup.run(MINUTE);
    setup.engine.end(setup.executor.now());
    let mut context = Context::from_waker(Waker::noop());
    assert!((0..10).any(|_| setup.task.as_mut().poll(&mut context).is_ready()), "it does not end");
    assert_eq!(lock(&lives)[..], [15 * 60_000, 0]);
}

/// The runtime goes on, so nothing is sent that would block it.
#[test]
fn a_removal_that_has_failed_is_not_repeated_without_the_runtime() {
    let is_first = AtomicBool::new(true);
    let (mut setup, lives) =
        setup_of(move || if is_first.swap(false, Ordering::SeqCst) { stored() } else { Err(refusal()) });
    setup.run(MINUTE);
    setup.engine.end(setup.executor.now());
    let mut context = Context::from_waker(Waker::noop());
    assert!((0..10).any(|_| setup.task.as_mut().poll(&mut context).is_ready()), "it does not end");
    drop(std::mem::replace(&mut setup.task, Box::pin(future::pending())));
    assert_eq!(lock(&lives)[..], [15 * 60_000, 0]);
}

/// A client that ends before it has stored anything.
#[test]
fn a_label_that_was_not_stored_is_not_removed() {
    let (mut setup, lives) = setup_of(stored);
    setup.engine.end(setup.executor.now());
    let mut context = Context::from_waker(Waker::noop());
    assert!((0..10).any(|_| setup.task.as_mut().poll(&mut context).is_ready()), "it does not end");
    assert_eq!(lock(&lives)[..], [0; 0]);
}

/// A `close` that was dropped: the watchdog removes the label, and stores it no more.
#[test]
fn a_client_that_is_closed_removes_its_label() {
    let (mut setup, lives) = setup_of(stored);
    setup.run(MINUTE);
    setup.engine.close(setup.executor.now());
    setup.run(20 * MINUTE);
    assert_eq!(lock(&lives)[..], [15 * 60_000, 0]);
}

/// The runtime drops the watchdog.
#[test]
fn the_end_of_the_runtime_removes_the_label() {
    let (mut setup, lives) = setup_of(stored);
    drop(std::mem::replace(&mut setup.task, Box::pin(future::pending())));
    assert_eq!(lock(&lives)[..], [0; 0], "nothing was stored");
    let (mut setup, lives) = setup_of(stored);
    setup.run(MINUTE);
    drop(std::mem::replace(&mut setup.task, Box::pin(future::pending())));
    assert_eq!(lock(&lives)[..], [15 * 60_000, 0]);
}
