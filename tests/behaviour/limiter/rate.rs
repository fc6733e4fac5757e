//! A rate that many tasks ask for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bowline::{Quota, Reply};
use futures::future::join_all;

use crate::support::env::{Env, on_every_server};

on_every_server! {
    the_rate_of_64_tasks_is_that_of_the_quota,
}

const RATE: u32 = 10_000;
const TASKS: u32 = 64;

/// So large that it does not refill while a machine stands still for seconds.
const BURST: u32 = 10 * RATE;

/// How long the tasks ask. The rate does not depend on it.
const LENGTH: Duration = Duration::from_millis(1000);

/// What the limiter has stored: when permits were last taken, by the server's clock in microseconds, and how far ahead
/// of that the whole burst is there again.
fn stored(env: &Env) -> (u64, Duration) {
    let key = "bowline:rate:{a}:tat";
    let text: String = if env.is_embedded() {
        match env.embedded().eval("return redis.call('GET', KEYS[1])", &[key.as_bytes()], &[]).unwrap() {
            Reply::Bytes(text) => String::from_utf8(text).unwrap(),
            other => panic!("{other:?}"),
        }
    } else {
        env.redis(&["GET", key])
    };
    let (written, ahead) = text.split_once(' ').unwrap();
    (written.parse().unwrap(), Duration::from_nanos(ahead.parse().unwrap()))
}

/// All times are those of the server's clock at its grants, so a slow machine changes nothing: what its tasks could not
/// ask for is taken at once at the end.
async fn the_rate_of_64_tasks_is_that_of_the_quota(env: Env) {
    let clients = join_all((0..4).map(|_| env.client())).await;
    let quota = Quota::per(RATE, Duration::from_secs(1)).burst(BURST);
    let limiter = clients[0].rate_limiter("a", quota);
    assert_eq!(limiter.check_n(BURST).await.unwrap().remaining, 0);
    let (began, full) = stored(&env);
    assert_eq!(full, Duration::from_secs(10));

    let (allowed, asked) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let end = env.now() + LENGTH;
    let tasks = (0..TASKS as usize).map(|task| {
        let (env, allowed, asked) = (env.clone(), allowed.clone(), asked.clone());
        let limiter = clients[task % clients.len()].rate_limiter("a", quota);
        env.clone().spawn(async move {
            while env.now() < end {
                let decision = limiter.check().await.unwrap();
                allowed.fetch_add(u64::from(decision.is_allowed()), Ordering::SeqCst);
                asked.fetch_add(1, Ordering::SeqCst);
            }
        })
    });
    join_all(tasks).await;
    let mut allowed = allowed.load(Ordering::SeqCst);
    let took = loop {
        let (ended, ahead) = stored(&env);
        let took = Duration::from_micros(ended - began);
        // Half of what the rate may be off by.
        if took >= LENGTH && (full - ahead) * 200 < took {
            break took;
        }
        let left = limiter.inspect().await.unwrap().remaining;
        if left > 0 {
            allowed += u64::from(left);
            assert!(limiter.check_n(left).await.unwrap().is_allowed());
        }
    };
    println!("{} checks, {allowed} allowed, in {took:?}", asked.load(Ordering::SeqCst));
    let due = u64::try_from(took.as_micros()).unwrap() * u64::from(RATE) / 1_000_000;
    assert!(allowed.abs_diff(due) <= due / 100, "{allowed} of {due}");
    assert!(limiter.reset().await.unwrap());
}
