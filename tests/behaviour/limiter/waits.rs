//! Waits that are dropped.

use std::future::IntoFuture;
use std::time::Duration;

use bowline::Quota;
use futures::FutureExt;
use futures::future::join_all;

use super::{HOUR, hourly};
use crate::support::env::{Env, on_every_server};
use crate::support::polled::polled;

on_every_server! {
    dropped_at_any_poll_it_takes_its_permit_at_most_once,
    a_dropped_wait_is_spent_and_delays_nobody_else,
    a_wait_needs_no_server,
}

const MS: Duration = Duration::from_millis(1);

async fn dropped_at_any_poll_it_takes_its_permit_at_most_once(env: Env) {
    let client = env.client().await;
    let (mut done, mut half_way, mut polls) = (false, 0, 0);
    for _ in 0..200 {
        let limiter = client.rate_limiter("a", hourly(2));
        assert!(limiter.check().await.unwrap().is_allowed());
        let taken = polled(limiter.until_ready().into_future(), polls, async || env.sleep(MS).await).await;
        // The dropped future may have taken its permit. A request that is on its way is executed before the next one.
        let seen = limiter.inspect().await.unwrap();
        assert!(seen.reset_after <= 2 * HOUR, "{seen:?}");
        half_way += u32::from(taken.is_none() && polls > 0);
        done = taken.is_some();
        assert!(!done || seen.limited);
        limiter.reset().await.unwrap();
        if done && (half_way > 0 || env.is_embedded()) {
            break;
        }
        // If the machine stood still during the first poll, the answer was there at its end: once more.
        polls = if done { 0 } else { polls + 1 };
    }
    // The embedded server answers at once.
    assert!(done && (half_way > 0 || env.is_embedded()), "{half_way}");
}

async fn a_dropped_wait_is_spent_and_delays_nobody_else(env: Env) {
    let client = env.client().await;
    let limiter = client.rate_limiter("a", Quota::per(1, 400 * MS));
    assert!(limiter.check().await.unwrap().is_allowed());
    let mut first = limiter.until_ready().into_future();
    env.eventually("it has reserved", async || {
        let is_pending = first.as_mut().now_or_never().is_none();
        !is_pending || limiter.inspect().await.unwrap().reset_after > 400 * MS
    })
    .await;
    let (mut behind, mut is_over) = (env.spawn(limiter.until_ready().into_future()), None);
    env.eventually("the next one, too", async || {
        is_over = is_over.take().or_else(|| (&mut behind).now_or_never());
        limiter.inspect().await.unwrap().reset_after > 800 * MS || is_over.is_some()
    })
    .await;
    let before = limiter.inspect().await.unwrap().reset_after;
    drop(first);
    assert!(limiter.inspect().await.unwrap().reset_after <= before, "nothing more is taken");
    let is_over = match is_over {
        Some(is_over) => is_over,
        None => env.soon("its turn", behind).await,
    };
    is_over.unwrap();
    assert_eq!(client.counts.of("rate_take"), 3);
    limiter.reset().await.unwrap();
}

/// Once permits are reserved, the rest is a timer.
async fn a_wait_needs_no_server(env: Env) {
    let client = env.client().await;
    let limiter = client.rate_limiter("a", Quota::per(10, 1000 * MS).burst(1));
    let waits = join_all((0..4).map(|_| limiter.until_ready().into_future()));
    let waits = env.spawn(waits);
    env.eventually("all are asked", async || client.counts.of("rate_take") == 4).await;
    client.counts.reset();
    for ready in env.soon("their turns", waits).await {
        ready.unwrap();
    }
    assert_eq!(client.counts.total(), 0, "{:?}", client.counts.all());
    limiter.reset().await.unwrap();
}
