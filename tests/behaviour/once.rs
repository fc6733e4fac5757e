//! What is true of work that runs once in a period, with futures and through the blocking facade (`lab`).

// Tests that need futures: work that waits, dropped half-way.
mod work;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use bowline::{ErrorKind, Run, RunOutcome, Schedule};
use futures::future::join_all;

use crate::lab::{Env, Once, on_every_server};

on_every_server! {
    of_all_who_call_in_a_period_one_runs,
    every_period_has_a_run_of_its_own,
    a_run_that_failed_counts_unless_it_is_retried,
    a_run_holds_for_at_least_as_long_as_it_is_told,
    a_run_is_told_its_period_and_its_token,
    what_makes_no_sense_is_refused,
    names_and_locks_are_others,
    a_run_costs_two_commands_and_a_refusal_one,
    a_pattern_of_cron_begins_a_period_whenever_it_matches,
    a_run_by_cron_costs_as_much_once_the_time_is_known,
    the_last_run_is_shown_with_the_label_of_its_client,
}

const MS: Duration = Duration::from_millis(1);

/// So long that no test sees its end, unless it runs at the moment that comes once in a year.
pub(crate) const LONG_PERIOD: Duration = Duration::from_secs(366 * 24 * 60 * 60);

async fn of_all_who_call_in_a_period_one_runs(env: Env) {
    let clients = join_all((0..4).map(|_| env.client())).await;
    let runs = Arc::new(AtomicU32::new(0));
    let calls = clients.iter().flat_map(|client| (0..8).map(|_| client.once("a", LONG_PERIOD)));
    let called = calls.map(|once| {
        let runs = runs.clone();
        once.run(move |_| runs.fetch_add(1, Ordering::SeqCst))
    });
    let outputs: Vec<_> = join_all(called).await.into_iter().map(Result::unwrap).collect();
    assert_eq!((outputs.iter().flatten().count(), runs.load(Ordering::SeqCst)), (1, 1));
    for client in &clients {
        assert_eq!(client.once("a", LONG_PERIOD).run(|_| ()).await.unwrap(), None);
        assert_eq!(client.stats().held, 0);
    }
    let state = clients[0].once("a", LONG_PERIOD).inspect().await.unwrap();
    let last = state.last.unwrap();
    assert!(clients.iter().any(|client| Some(client.id()) == last.client));
    assert_eq!((last.outcome, state.holds_for), (RunOutcome::Done, None));
    assert!(last.took.unwrap() <= last.began_ago);
    assert_eq!(env.keys(), [""; 0]);
}

async fn every_period_has_a_run_of_its_own(env: Env) {
    let every = 1000 * MS;
    let clients = join_all((0..3).map(|_| env.client())).await;
    let mut seen: Vec<(u64, u64)> = Vec::new();
    while seen.len() < 4 {
        for client in &clients {
            seen.extend(client.once("a", every).run(|run| (run.tick(), run.token().get())).await.unwrap());
        }
        env.sleep(50 * MS).await;
    }
    assert!(seen.is_sorted_by(|one, next| one.0 < next.0 && one.1 < next.1), "{seen:?}");
}

async fn a_run_that_failed_counts_unless_it_is_retried(env: Env) {
    let (one, other) = (env.client().await, env.client().await);
    let plain = |name| one.once(name, LONG_PERIOD);
    let failed = plain("a").try_run(|_| Err::<(), _>("no")).await.unwrap();
    assert_eq!(failed, Some(Err("no")));
    let outcome = async |once: &Once| once.inspect().await.unwrap().last.unwrap().outcome;
    assert_eq!(outcome(&plain("a")).await, RunOutcome::Failed);
    assert_eq!(plain("a").run(|_| ()).await.unwrap(), None);
    let retried = other.once("a", LONG_PERIOD).retry_on_error();
    assert_eq!(retried.try_run(|_| Err::<(), _>(1)).await.unwrap(), Some(Err(1)));
    assert_eq!(retried.try_run(|_| Ok::<_, ()>(2)).await.unwrap(), Some(Ok(2)));
    assert_eq!(outcome(&retried).await, RunOutcome::Done);
    assert_eq!(retried.try_run(|_| Ok::<_, ()>(3)).await.unwrap(), None);
    // To `run`, an error is an output as any other.
    assert_eq!(plain("b").run(|_| Err::<(), _>(1)).await.unwrap(), Some(Err(1)));
    assert_eq!(outcome(&plain("b")).await, RunOutcome::Done);
}

async fn a_run_holds_for_at_least_as_long_as_it_is_told(env: Env) {
    let (one, other) = (env.client().await, env.client().await);
    let (every, least) = (1000 * MS, 2500 * MS);
    let once = one.once("a", every).at_least(least).retry_on_error();
    let before = env.now();
    assert_eq!(once.try_run(|_| Err::<(), _>(())).await.unwrap(), Some(Err(())));
    assert_eq!(one.stats().held, 0, "the client has nothing to renew");
    let state = once.inspect().await.unwrap();
    assert_eq!(state.last.as_ref().map(|last| last.outcome), Some(RunOutcome::Failed));
    let holds = state.holds_for.map_or(env.now() >= before + least, |left| left <= least);
    assert!(holds, "{state:?}");
    // Neither the next period nor a retry begins sooner, also if the client is gone.
    one.close().await;
    let next = other.once("a", every).retry_on_error();
    while next.run(|_| ()).await.unwrap().is_none() {
        env.sleep(20 * MS).await;
    }
    assert!(env.now() >= before + least);
}

async fn a_run_is_told_its_period_and_its_token(env: Env) {
    let client = env.client().await;
    let every = 3_600_000 * MS;
    let told = |run: Run| {
        assert!(run.is_valid() && !run.lost_signal().is_lost());
        (run.token(), run.tick(), run.period_began(), run)
    };
    let (token, tick, began, run) = client.once("a", every).run(told).await.unwrap().unwrap();
    assert!(!run.is_valid() && !run.lost_signal().is_lost(), "it has ended");
    let at = Duration::from_micros(token.get());
    assert_eq!(u128::from(tick), at.as_millis() / every.as_millis());
    assert_eq!(began, SystemTime::UNIX_EPOCH + every * u32::try_from(tick).unwrap());
    let last = client.once("a", every).inspect().await.unwrap().last.unwrap();
    assert_eq!((last.client, last.token, last.tick), (Some(client.id()), token, tick));
    assert_eq!(client.once("never", every).inspect().await.unwrap().last, None);
}

async fn what_makes_no_sense_is_refused(env: Env) {
    let client = env.client().await;
    client.counts.reset();
    let refused = [
        client.once("", LONG_PERIOD),
        client.once("a", 999 * MS),
        client.once("a", LONG_PERIOD + MS),
        client.once("a", 1000 * MS + Duration::from_micros(1)),
        client.once("a", LONG_PERIOD).at_least(bowline::MAX_LEASE + MS),
        client.once("a", LONG_PERIOD).at_most(99 * MS),
    ];
    for once in refused {
        let error = once.run(|_| ()).await.unwrap_err();
        assert_eq!((error.kind(), error.operation()), (ErrorKind::InvalidInput, "once"), "{error}");
    }
    assert_eq!(client.once("a", MS).inspect().await.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(client.counts.total(), 0);
    assert_eq!(client.once("a", 1000 * MS).run(|_| 1).await.unwrap(), Some(1));
    client.close().await;
    let error = client.once("b", LONG_PERIOD).run(|_| ()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
}

async fn names_and_locks_are_others(env: Env) {
    let client = env.client().await;
    let guard = client.lock("a").lock().await.unwrap();
    for name in ["a", "b"] {
        assert_eq!(client.once(name, LONG_PERIOD).run(|_| ()).await.unwrap(), Some(()));
    }
    assert!(guard.is_valid());
    guard.release().await.unwrap();
}

async fn a_run_costs_two_commands_and_a_refusal_one(env: Env) {
    let client = env.client().await;
    let once = client.once("a", LONG_PERIOD);
    client.counts.reset();
    assert_eq!(once.run(|_| 1).await.unwrap(), Some(1));
    assert_eq!((client.counts.total(), client.counts.of("once_end")), (2, 1), "{:?}", client.counts.all());
    assert_eq!(once.run(|_| 1).await.unwrap(), None);
    assert_eq!((client.counts.total(), client.counts.of("once_begin")), (3, 2), "{:?}", client.counts.all());
}

async fn a_pattern_of_cron_begins_a_period_whenever_it_matches(env: Env) {
    let schedule = Schedule::cron("*/2 * * * * *").unwrap();
    let clients = join_all((0..3).map(|_| env.client())).await;
    let mut runs: Vec<Run> = Vec::new();
    let called = async {
        while runs.len() < 3 {
            for client in &clients {
                runs.extend(client.once("a", schedule.clone()).run(|run| run).await.unwrap());
            }
            env.sleep(50 * MS).await;
        }
    };
    env.soon("three periods have runs", called).await;
    for run in &runs {
        assert_eq!((run.tick() % 2, run.token().get() / 2_000_000), (0, run.tick() / 2));
        assert_eq!(run.period_began(), SystemTime::UNIX_EPOCH + Duration::from_secs(run.tick()));
    }
    assert!(runs.is_sorted_by(|one, next| one.tick() < next.tick() && one.token() < next.token()), "{runs:?}");
    let last = clients[0].once("a", schedule).inspect().await.unwrap().last.unwrap();
    assert_eq!((last.token, last.tick), runs.last().map(|run| (run.token(), run.tick())).unwrap());
}

async fn a_run_by_cron_costs_as_much_once_the_time_is_known(env: Env) {
    let client = env.client().await;
    let once = client.once("a", Schedule::cron("@yearly").unwrap());
    once.inspect().await.unwrap();
    client.counts.reset();
    assert_eq!(once.run(|_| 1).await.unwrap(), Some(1));
    assert_eq!((client.counts.total(), client.counts.of("once_end")), (2, 1), "{:?}", client.counts.all());
    assert_eq!(once.run(|_| 1).await.unwrap(), None);
    assert_eq!((client.counts.total(), client.counts.of("once_begin")), (3, 2), "{:?}", client.counts.all());
}

async fn the_last_run_is_shown_with_the_label_of_its_client(env: Env) {
    let client = env.client_with(|config| config.label("web-7")).await;
    let once = client.once("a", LONG_PERIOD);
    once.run(|_| ()).await.unwrap();
    let label = async || once.inspect().await.unwrap().last.unwrap().label;
    env.eventually("its label is known", async || label().await.as_deref() == Some("web-7")).await;
}
