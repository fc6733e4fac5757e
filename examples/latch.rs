//! Three workers start, and a task waits until all of them are up.
//!
//! `cargo run --example latch`, without a Redis, or on the one at `REDIS_URL`.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

#[path = "support/client.rs"]
mod support;

use std::error::Error;
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = support::connect().await?;
    let started = client.latch("workers started");
    // The first program sets the latch. For the others it is already set.
    let first = started.try_set(3, Duration::from_secs(60)).await?;
    println!("set by us: {first}");

    let workers: Vec<_> = (1..=3)
        .map(|number| {
            let started = started.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(20 * number)).await;
                let left = started.count_down().await?;
                println!("  worker {number} is up, {left} to go");
                Ok::<_, bowline::Error>(())
            })
        })
        .collect();

    started.wait().timeout(Duration::from_secs(10)).await?;
    println!("all of them are up");
    for worker in workers {
        worker.await??;
    }
    started.delete().await?;
    client.close().await;
    Ok(())
}
