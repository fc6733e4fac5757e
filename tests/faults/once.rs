//! Runs that happen once in a period, when answers are lost and the client cleans up.

use std::time::{Duration, SystemTime};

use bowline::{ErrorKind, Reply, RunOutcome, Schedule};

use crate::faulty::{Fault, faulty_client};
use crate::scene::ms;
use crate::support::env::{Env, on_every_runtime};

on_every_runtime! {
    a_run_whose_grant_was_lost_begins_with_its_second_copy,
    an_end_whose_answer_was_lost_is_an_end,
    a_clean_up_does_not_end_the_least_time,
    work_is_not_called_if_its_beginning_has_no_answer,
    work_that_is_done_counts_although_its_end_has_no_answer,
    work_that_is_done_counts_although_its_lease_ends_before_its_end_is_asked_for,
    a_run_that_was_begun_too_late_to_be_known_is_not_run,
    a_run_by_cron_begins_although_another_server_is_ahead,
    a_run_by_cron_whose_beginning_is_lost_begins_with_its_second_copy,
}

const LONG_PERIOD: Duration = Duration::from_secs(366 * 24 * 60 * 60);
const KEY: &str = "bowline:once:{a}";

fn left(env: &Env) -> i64 {
    env.redis(&["PTTL", KEY])
}

async fn a_run_whose_grant_was_lost_begins_with_its_second_copy(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    faults.next("once_begin", [Fault::LoseReply]);
    let once = client.once("a", LONG_PERIOD);
    let valid = once.run(async |run| run.is_valid()).await.unwrap();
    assert_eq!((valid, faults.calls("once_begin")), (Some(true), 2));
    assert_eq!(once.inspect().await.unwrap().last.unwrap().outcome, RunOutcome::Done);
    assert_eq!(once.run(async |_| ()).await.unwrap(), None);
}

async fn an_end_whose_answer_was_lost_is_an_end(env: Env) {
    for least in [0, 60_000] {
        let (client, faults) = faulty_client(&env, |config| config).await;
        faults.next("once_end", [Fault::LoseReply]);
        let once = client.once("a", ms(1000)).at_least(ms(least));
        env.eventually("it runs", async || once.run(async |_| ()).await.unwrap().is_some()).await;
        assert_eq!(faults.calls("once_end"), 2);
        let state = once.inspect().await.unwrap();
        assert_eq!(state.last.unwrap().outcome, RunOutcome::Done);
        assert_eq!((state.holds_for.is_some(), left(&env) > 20_000), (least > 0, least > 0));
    }
    env.leaves_keys();
}

async fn a_clean_up_does_not_end_the_least_time(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let once = client.once("a", LONG_PERIOD).at_least(ms(60_000));
    assert_eq!(once.run(async |_| 1).await.unwrap(), Some(1));
    // The client cancels what it has ended lately: the server may have gone back to an older state.
    faults.gap();
    env.eventually("it cleans up", async || faults.answered("lock_cancel") > 0).await;
    assert!(left(&env) > 20_000, "{}", left(&env));
    env.leaves_keys();
}

/// The server has executed the request. Only a retry gets another run in the period.
async fn work_is_not_called_if_its_beginning_has_no_answer(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.retry_timeout(ms(300))).await;
    faults.always("once_begin", Fault::LoseReply);
    let once = client.once("a", LONG_PERIOD);
    let error = once.run(async |_| panic!("it has not begun")).await.map(|_: Option<()>| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    env.eventually("its hold is cancelled", async || left(&env) == -2).await;
    let other = env.client().await;
    let other = other.once("a", LONG_PERIOD);
    assert_eq!(other.inspect().await.unwrap().last.unwrap().outcome, RunOutcome::Abandoned);
    assert_eq!(other.run(async |_| ()).await.unwrap(), None);
    assert_eq!(other.retry_on_error().run(async |_| 1).await.unwrap(), Some(1));
}

async fn work_that_is_done_counts_although_its_end_has_no_answer(env: Env) {
    for fault in [Fault::LoseRequest, Fault::LoseReply] {
        let is_noted = matches!(fault, Fault::LoseReply);
        let name = if is_noted { "a" } else { "b" };
        let (client, faults) = faulty_client(&env, |config| config.retry_timeout(ms(300))).await;
        faults.always("once_end", fault);
        let once = client.once(name, LONG_PERIOD);
        assert_eq!(once.run(async |_| 1).await.unwrap(), Some(1));
        env.eventually("its hold is gone", async || once.inspect().await.unwrap().holds_for.is_none()).await;
        let outcome = once.inspect().await.unwrap().last.unwrap().outcome;
        assert_eq!(outcome, if is_noted { RunOutcome::Done } else { RunOutcome::Abandoned });
        assert_eq!(once.run(async |_| ()).await.unwrap(), None);
    }
}

async fn work_that_is_done_counts_although_its_lease_ends_before_its_end_is_asked_for(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.lease(ms(1000))).await;
    faults.always("once_end", Fault::Unreachable);
    let (once, other) = (client.once("a", LONG_PERIOD), env.client().await);
    let run = env.spawn(async move { once.run(async |_| 1).await });
    let last = async || other.once("a", LONG_PERIOD).inspect().await.unwrap().last.map(|last| last.outcome);
    env.eventually("its hold is gone", async || last().await == Some(RunOutcome::Abandoned)).await;
    faults.heal();
    assert_eq!(env.soon("the run", run).await.unwrap(), Some(1));
    assert_eq!(last().await, Some(RunOutcome::Abandoned));
}

/// The lease is over when the answer comes.
async fn a_run_that_was_begun_too_late_to_be_known_is_not_run(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    faults.next("once_begin", [Fault::Slow(ms(500))]);
    let once = client.once("a", LONG_PERIOD).at_most(ms(200));
    assert_eq!(once.run(async |_| panic!("it has no hold")).await.unwrap(), None::<()>);
    assert_eq!(once.inspect().await.unwrap().last.unwrap().outcome, RunOutcome::Abandoned);
}

/// The client keeps the clock that is furthest ahead for ten seconds.
async fn a_run_by_cron_begins_although_another_server_is_ahead(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let once = client.once("a", Schedule::cron("*/5 * * * * *").unwrap());
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as i64;
    let nothing = || Reply::Bytes(Vec::new());
    let ahead = Reply::Array(vec![nothing(), Reply::Integer(-2), nothing(), Reply::Integer(now + 5000)]);
    faults.next("once_inspect", [Fault::Answer(ahead)]);
    assert_eq!(once.inspect().await.unwrap().last, None);
    // A period may end between the two calls, but not again and again.
    let mut ran = None;
    for _ in 0..3 {
        ran = ran.or(once.run(async |run| run.tick()).await.unwrap());
    }
    let last = once.inspect().await.unwrap().last.unwrap();
    assert_eq!(ran, Some(last.tick));
    assert!(last.tick <= u64::try_from(now).unwrap() / 1000 + 60);
}

async fn a_run_by_cron_whose_beginning_is_lost_begins_with_its_second_copy(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    for (name, fault) in [("a", Fault::LoseReply), ("b", Fault::LoseRequest)] {
        let calls = faults.calls("once_begin");
        faults.next("once_begin", [fault]);
        let once = client.once(name, Schedule::cron("@yearly").unwrap());
        assert_eq!(once.run(async |run| run.is_valid()).await.unwrap(), Some(true));
        assert_eq!(faults.calls("once_begin"), calls + 2);
        assert_eq!(once.run(async |_| ()).await.unwrap(), None);
    }
}
