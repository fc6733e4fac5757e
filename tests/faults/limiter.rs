//! Rate limiters whose requests and answers get lost, late or refused.

use std::future::IntoFuture;
use std::time::Duration;

use bowline::{ErrorKind, Quota, RateLimiter, Reply};
use futures::FutureExt;

use crate::faulty::{Fault, faulty_client};
use crate::scene::ms;
use crate::support::env::{Env, on_every_runtime};

on_every_runtime! {
    a_request_that_may_have_been_executed_is_not_sent_again,
    a_request_that_was_not_executed_is_sent_again,
    a_request_that_came_too_late_is_sent_again,
    a_wait_begins_with_its_answer,
    a_timeout_ends_the_wait_for_an_answer,
    a_frozen_server_takes_nothing_for_callers_that_have_given_up,
    a_frozen_server_takes_nothing_after_the_timeout_of_a_wait,
    without_a_server_a_call_ends_with_the_retry_timeout,
    a_restart_without_data_gives_one_burst_more,
}

const HOUR: Duration = Duration::from_secs(3600);
const BURST: u32 = 10;

fn hourly() -> Quota {
    Quota::per(1, HOUR).burst(BURST)
}

/// How many permits are taken, waits included.
async fn taken(limiter: &RateLimiter) -> u64 {
    limiter.inspect().await.unwrap().reset_after.as_secs().div_ceil(HOUR.as_secs())
}

async fn a_request_that_may_have_been_executed_is_not_sent_again(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let limiter = client.rate_limiter("a", hourly());
    let mut expected = 0;
    for (fault, takes) in [(Fault::LoseReply, 1), (Fault::LoseRequest, 0), (Fault::Late, 1)] {
        let is_late = matches!(fault, Fault::Late);
        for waits in [false, true] {
            let calls = faults.calls("rate_take");
            faults.next("rate_take", [fault.clone()]);
            let outcome = if waits { limiter.until_ready().await } else { limiter.check().await.map(drop) };
            let error = outcome.unwrap_err();
            assert_eq!((error.kind(), error.name()), (ErrorKind::Unavailable, Some("a")));
            let told = format!("{error:#}");
            assert!(told.contains("the request may have been executed") && told.contains("no answer"), "{told}");
            assert_eq!(faults.calls("rate_take"), calls + 1);
            if is_late {
                assert_eq!(faults.send_late().await.len(), 1);
            }
            expected += takes;
            assert_eq!(taken(&limiter).await, expected, "{fault:?}");
        }
    }
    faults.next("rate_reset", [Fault::LoseRequest]);
    assert_eq!(limiter.reset().await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!((faults.calls("rate_reset"), taken(&limiter).await), (1, expected));
    // A look may be repeated.
    faults.next("rate_inspect", [Fault::LoseReply, Fault::LoseRequest]);
    assert_eq!(taken(&limiter).await, expected);
    assert!(limiter.reset().await.unwrap());
}

async fn a_request_that_was_not_executed_is_sent_again(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let limiter = client.rate_limiter("a", hourly());
    let loading = || Fault::Refuse("LOADING Redis is loading the dataset in memory");
    for waits in [false, true] {
        let calls = faults.calls("rate_take");
        faults.next("rate_take", [Fault::Unreachable, loading(), Fault::Refuse("OOM command not allowed")]);
        if waits {
            limiter.until_ready().await.unwrap();
        } else {
            assert!(limiter.check().await.unwrap().is_allowed());
        }
        assert_eq!((faults.calls("rate_take"), taken(&limiter).await), (calls + 4, 1 + u64::from(waits)));
    }
    faults.next("rate_reset", [Fault::Unreachable, loading()]);
    assert!(limiter.reset().await.unwrap());
    // What no pause mends is told at once.
    faults.next("rate_take", [Fault::Refuse("NOPERM User bowline has no permissions to run the 'set' command")]);
    assert_eq!(limiter.check().await.unwrap_err().kind(), ErrorKind::Denied);
    assert_eq!(faults.calls("rate_take"), 9);
}

async fn a_request_that_came_too_late_is_sent_again(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let limiter = client.rate_limiter("a", hourly());
    let (seconds, micros): (i64, i64) = env.redis(&["TIME"]);
    let now = seconds * 1000 + micros / 1000;
    let stale = || Fault::Answer(Reply::Array(vec![Reply::Bytes("STALE".into()), Reply::Integer(now)]));
    faults.next("rate_take", [stale(), stale()]);
    assert!(limiter.check().await.unwrap().is_allowed());
    faults.next("rate_reset", [stale()]);
    assert!(limiter.reset().await.unwrap());
    assert_eq!((faults.calls("rate_take"), faults.calls("rate_reset")), (3, 2));
    // What no script answers is an error, and nobody knows what was taken.
    faults.next("rate_take", [Fault::Answer(Reply::Array(vec![Reply::Bytes("GRANTED".into())]))]);
    assert_eq!(limiter.check().await.unwrap_err().kind(), ErrorKind::Protocol);
    assert_eq!(faults.calls("rate_take"), 4);
}

async fn a_wait_begins_with_its_answer(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let interval = ms(1500);
    let limiter = client.rate_limiter("a", Quota::per(1, interval));
    let began = env.now();
    assert!(limiter.check().await.unwrap().is_allowed());
    // The request reaches the server before the answer comes, but how much before is not known.
    faults.next("rate_take", [Fault::HangReply]);
    let mut waits = limiter.until_ready().into_future();
    env.eventually("it has reserved", async || {
        assert!(waits.as_mut().now_or_never().is_none());
        limiter.inspect().await.unwrap().reset_after > interval || env.now() - began > interval
    })
    .await;
    let least = interval.saturating_sub(env.now() - began);
    env.sleep(ms(500)).await;
    let answered = env.now();
    faults.release();
    env.soon("its turn", waits).await.unwrap();
    assert!(env.now() - answered >= least);
    limiter.reset().await.unwrap();
}

async fn a_timeout_ends_the_wait_for_an_answer(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let limiter = client.rate_limiter("a", hourly());
    for (fault, takes) in [(Fault::Hang, 0), (Fault::HangReply, 1)] {
        faults.next("rate_take", [fault]);
        let error = env.soon("its end", limiter.until_ready().timeout(ms(200))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(error.to_string().contains("the permits may have been taken"), "{error}");
        assert_eq!(taken(&limiter).await, takes);
    }
    assert!(limiter.reset().await.unwrap());
}

async fn a_frozen_server_takes_nothing_for_callers_that_have_given_up(env: Env) {
    let client = env.client_with(|config| config.command_timeout(ms(300)).retry_timeout(ms(300))).await;
    let limiter = client.rate_limiter("a", hourly());
    assert!(limiter.check().await.unwrap().is_allowed());
    env.server().pause();
    let outcomes = [limiter.check().await.map(drop), limiter.until_ready().await];
    for outcome in outcomes {
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Unavailable);
    }
    // Their requests are in the server's buffers.
    env.sleep(ms(600)).await;
    env.server().resume();
    env.eventually("it answers", async || limiter.inspect().await.is_ok()).await;
    assert_eq!(taken(&limiter).await, 1);
    assert!(limiter.reset().await.unwrap());
}

/// The timeout is shorter than the command timeout, and counts from the call on.
async fn a_frozen_server_takes_nothing_after_the_timeout_of_a_wait(env: Env) {
    let client = env.client().await;
    let limiter = client.rate_limiter("a", hourly());
    assert!(limiter.check().await.unwrap().is_allowed());
    env.server().pause();
    let error = limiter.until_ready().timeout(ms(200)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    env.sleep(ms(600)).await;
    env.server().resume();
    env.eventually("it answers", async || limiter.inspect().await.is_ok()).await;
    assert_eq!(taken(&limiter).await, 1);
    assert!(limiter.reset().await.unwrap());
}

async fn without_a_server_a_call_ends_with_the_retry_timeout(env: Env) {
    let client = env.client_with(|config| config.retry_timeout(ms(400))).await;
    let limiter = client.rate_limiter("a", hourly());
    assert!(limiter.check().await.unwrap().is_allowed());
    env.server().kill();
    let (began, calls) = (env.now(), [limiter.check().await.map(drop), limiter.until_ready().await]);
    assert!(env.now() - began < ms(400) * 2 + crate::scene::SLACK);
    for outcome in calls {
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Unavailable);
    }
    env.leaves_keys();
}

async fn a_restart_without_data_gives_one_burst_more(env: Env) {
    let client = env.client().await;
    let limiter = client.rate_limiter("a", hourly());
    assert!(limiter.check_n(BURST).await.unwrap().is_allowed());
    assert!(limiter.check().await.unwrap().limited);
    env.server().kill();
    env.server().restart();
    // The first request may be lost with the old connection.
    assert!(limiter.inspect().await.unwrap().is_allowed());
    let mut allowed = 0;
    for _ in 0..2 * BURST {
        allowed += u32::from(limiter.check().await.unwrap().is_allowed());
    }
    assert_eq!(allowed, BURST);
    assert!(limiter.reset().await.unwrap());
}
