//! A rate limiter that 64 tasks of one client ask all the time: how often they ask, and how much they are allowed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline::{Executor, Quota, RateLimiter};
use bowline_benches::runtime::Runtime;
use bowline_benches::{Result, clients};
use futures::future::try_join_all;

use crate::Metrics;

const TASKS: usize = 64;
const PER_SECOND: u32 = 10_000;
/// Small, so that it does not hide a rate that is too low.
const BURST: u32 = 100;

/// For so many milliseconds.
pub(crate) async fn measure(
    runtime: Runtime,
    executor: Arc<dyn Executor>,
    url: String,
    millis: u32,
) -> Result<Metrics> {
    let client = clients::plain(runtime, &executor, &url).await?;
    let limiter = client.rate_limiter("bench:limiter", Quota::per(PER_SECOND, Duration::from_secs(1)).burst(BURST));
    let (start, length) = (Instant::now(), Duration::from_millis(millis.into()));
    let counts = try_join_all((0..TASKS).map(|_| ask(&limiter, start + length))).await?;
    let seconds = start.elapsed().as_secs_f64();
    client.close().await;
    let (asked, allowed) = counts.iter().fold((0, 0), |(asked, allowed), count| (asked + count.0, allowed + count.1));
    Ok(vec![
        ("checks_per_second", asked as f64 / seconds),
        ("allowed_to_quota", (allowed as f64 - f64::from(BURST)) / seconds / f64::from(PER_SECOND)),
    ])
}

/// How many checks were made, and how many allowed.
async fn ask(limiter: &RateLimiter, until: Instant) -> Result<(u64, u64)> {
    let (mut asked, mut allowed) = (0, 0);
    while Instant::now() < until {
        asked += 1;
        allowed += u64::from(limiter.check().await?.is_allowed());
    }
    Ok((asked, allowed))
}
