//! Two programs call a service that allows ten calls in a second: one waits for its turn, and one refuses what is too
//! much.
//!
//! `cargo run --example rate_limiter`, without a Redis, or on the one at `REDIS_URL`.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

#[path = "support/client.rs"]
mod support;

use std::error::Error;
use std::time::{Duration, Instant};

use bowline::Quota;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = support::connect().await?;
    // Seven in a second on average, and three at once after a pause: at most ten in any one second.
    let quota = Quota::per(7, Duration::from_secs(1)).burst(3);

    // A program of its own would have a client of its own.
    let limiter = client.rate_limiter("their-api", quota);
    let worker = tokio::spawn(async move {
        let start = Instant::now();
        for n in 1..=12 {
            limiter.until_ready().timeout(Duration::from_secs(10)).await?;
            println!("{:>5} ms: call {n}", start.elapsed().as_millis());
        }
        Ok::<_, bowline::Error>(())
    });

    let limiter = client.rate_limiter("their-api", quota);
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_millis(150)).await;
        let decision = limiter.check().await?;
        match decision.retry_after {
            None => println!("          a request is served; {} more could be", decision.remaining),
            Some(pause) => println!("          a request is refused: 429, Retry-After: {pause:?}"),
        }
    }
    worker.await??;
    client.close().await;
    Ok(())
}
