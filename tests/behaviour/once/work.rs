//! Work that waits, panics, outlasts its period, or is dropped.

use std::error::Error as _;
use std::future::pending;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use bowline::{ErrorKind, Loss, Once, RunOutcome};
use futures::FutureExt;

use super::LONG_PERIOD;
use crate::support::env::{Env, on_every_server};
use crate::support::polled::{polled, sweep};

on_every_server! {
    a_panic_is_a_failure_and_goes_on,
    work_that_outlasts_its_period_keeps_others_away,
    a_run_is_renewed,
    a_run_ends_after_its_limit,
    work_that_is_dropped_is_abandoned,
    dropped_at_any_poll_it_leaves_nothing,
    a_closed_client_stops_its_work,
}

const MS: Duration = Duration::from_millis(1);

fn loss_of(error: &bowline::Error) -> Option<Loss> {
    error.source().and_then(|loss| loss.downcast_ref()).copied()
}

async fn outcome(once: &Once) -> Option<RunOutcome> {
    once.inspect().await.unwrap().last.map(|last| last.outcome)
}

async fn a_panic_is_a_failure_and_goes_on(env: Env) {
    let client = env.client().await;
    let once = client.once("a", LONG_PERIOD).retry_on_error();
    for early in [true, false] {
        let work = |_| {
            assert!(!early, "before its future");
            async { panic!("in its future") }
        };
        let panicked = AssertUnwindSafe(once.run::<_, _>(work)).catch_unwind().await;
        assert!(panicked.map(|output: bowline::Result<Option<()>>| drop(output)).is_err());
        assert_eq!(outcome(&once).await, Some(RunOutcome::Failed));
        assert_eq!(once.inspect().await.unwrap().holds_for, None);
    }
    assert_eq!(once.run(|_| async { 1 }).await.unwrap(), Some(1));
}

async fn work_that_outlasts_its_period_keeps_others_away(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let every = 1000 * MS;
    let (begin, end) = (env.now(), futures::channel::oneshot::channel::<()>());
    let running = env.spawn({
        let once = client.once("a", every);
        async move { once.run(|run| async move { end.1.await.map(|()| run.tick()) }).await }
    });
    env.eventually("it runs", async || outcome(&other.once("a", every)).await == Some(RunOutcome::Running)).await;
    while env.now() < begin + 3 * every {
        assert_eq!(other.once("a", every).retry_on_error().run(|_| async {}).await.unwrap(), None);
        env.sleep(100 * MS).await;
    }
    end.0.send(()).unwrap();
    let tick = env.soon("it ends", running).await.unwrap().unwrap().unwrap();
    let last = other.once("a", every).inspect().await.unwrap().last.unwrap();
    assert_eq!((last.tick, last.outcome), (tick, RunOutcome::Done));
    assert!(last.took.unwrap() >= 2 * every);
    // The period of now has had no run.
    assert_eq!(other.once("a", every).run(|_| async { 1 }).await.unwrap(), Some(1));
}

async fn a_run_is_renewed(env: Env) {
    let lease = 900 * MS;
    let client = env.client_with(|config| config.lease(lease)).await;
    let began = env.now();
    let renewed = async |run: bowline::Run| {
        while env.now() < began + 3 * lease {
            env.sleep(20 * MS).await;
        }
        run.is_valid()
    };
    assert_eq!(client.once("a", LONG_PERIOD).run(renewed).await.unwrap(), Some(true));
    assert!(client.counts.of("lock_renew") >= 2);
}

async fn a_run_ends_after_its_limit(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let once = client.once("a", LONG_PERIOD).at_most(500 * MS);
    let error = env.soon("it ends", once.run(|_| pending::<()>())).await.unwrap_err();
    assert_eq!((error.kind(), loss_of(&error)), (ErrorKind::Lost, Some(Loss::Expired)));
    let again = other.once("a", LONG_PERIOD);
    env.eventually("the hold ends", async || again.inspect().await.unwrap().holds_for.is_none()).await;
    assert_eq!(outcome(&again).await, Some(RunOutcome::Abandoned));
    assert_eq!(again.run(|_| async {}).await.unwrap(), None);
    assert_eq!(again.retry_on_error().run(|_| async { 1 }).await.unwrap(), Some(1));
}

async fn work_that_is_dropped_is_abandoned(env: Env) {
    let client = env.client().await;
    let once = client.once("a", LONG_PERIOD);
    let mut run = Box::pin(once.run(|_| pending::<()>()));
    env.eventually("it runs", async || {
        assert!(run.as_mut().now_or_never().is_none());
        outcome(&once).await == Some(RunOutcome::Running)
    })
    .await;
    drop(run);
    env.eventually("its hold is released", async || once.inspect().await.unwrap().holds_for.is_none()).await;
    assert_eq!(outcome(&once).await, Some(RunOutcome::Abandoned));
    assert_eq!(once.run(|_| async {}).await.unwrap(), None);
}

async fn dropped_at_any_poll_it_leaves_nothing(env: Env) {
    let client = env.client().await;
    let mut runs = 0;
    let run = async |polls| {
        runs += 1;
        let once = client.once(&format!("a{runs}"), LONG_PERIOD);
        let run = polled(once.run(|_| async {}), polls, async || env.sleep(MS).await).await;
        if run.is_some() {
            assert_eq!(outcome(&once).await, Some(RunOutcome::Done));
        }
        run
    };
    let nothing_is_left = async || client.stats().held == 0 && env.keys().is_empty();
    sweep(run, async || env.eventually("nothing is left", nothing_is_left).await).await;
}

async fn a_closed_client_stops_its_work(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let (begun, begins) = futures::channel::oneshot::channel();
    let running = env.spawn({
        let once = client.once("a", LONG_PERIOD);
        async move {
            let work = async move |_| {
                begun.send(()).unwrap();
                pending::<()>().await;
            };
            once.run(work).await
        }
    });
    let again = other.once("a", LONG_PERIOD).retry_on_error();
    env.soon("it runs", begins).await.unwrap();
    assert_eq!(outcome(&again).await, Some(RunOutcome::Running));
    client.close().await;
    let error = env.soon("it stops", running).await.unwrap_err();
    assert_eq!((error.kind(), loss_of(&error)), (ErrorKind::Lost, Some(Loss::Closed)));
    assert_eq!(again.run(|_| async { 1 }).await.unwrap(), Some(1));
}
