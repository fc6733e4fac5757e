//! Three workers compute in steps. None begins a step before all have ended the one before.
//!
//! `cargo run --example barrier`, without a Redis, or on the one at `REDIS_URL`.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

#[path = "support/client.rs"]
mod support;

use std::error::Error;
use std::time::Duration;

const WORKERS: u32 = 3;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = support::connect().await?;
    let workers: Vec<_> = (1..=WORKERS)
        .map(|number| {
            // In a program of its own, each worker makes its own client.
            let barrier = client.barrier("steps", WORKERS);
            tokio::spawn(async move {
                for step in 1..=3 {
                    tokio::time::sleep(Duration::from_millis(20 * u64::from(number))).await;
                    println!("  worker {number} has ended step {step}");
                    // Fails with `Broken` if one of the others gives up or dies.
                    let passed = barrier.wait().timeout(Duration::from_secs(10)).await?;
                    if passed.is_leader() {
                        println!("step {step} is done");
                    }
                }
                Ok::<_, bowline::Error>(())
            })
        })
        .collect();
    for worker in workers {
        worker.await??;
    }

    // A double barrier also tells a worker when another one dies at work.
    let workers = [1, 2].map(|number| {
        let together = client.double_barrier("together", 2);
        tokio::spawn(async move {
            let inside = together.enter().timeout(Duration::from_secs(10)).await?;
            println!("  worker {number} works, and the other one has begun too");
            inside.leave().timeout(Duration::from_secs(10)).await
        })
    });
    for worker in workers {
        worker.await??;
    }
    println!("both have ended");
    client.close().await;
    Ok(())
}
