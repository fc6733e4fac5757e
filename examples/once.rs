//! Three programs call a job by their own timers, and in each period one of them runs it.
//!
//! `cargo run --example once`, without a Redis, or on the one at `REDIS_URL`.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

#[path = "support/client.rs"]
mod support;

use std::error::Error;
use std::time::Duration;

use bowline::Run;

/// What is to happen once in each period. Its number names what is written, so that nothing is written twice.
async fn job(program: u32, run: Run) -> Result<u64, String> {
    println!("program {program} runs period {}, with token {}", run.tick(), run.token());
    if run.tick().is_multiple_of(2) { Ok(run.tick()) } else { Err(format!("period {} has no luck", run.tick())) }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = support::connect().await?;
    let every = Duration::from_secs(1);

    let programs: Vec<_> = (1..=3)
        .map(|program| {
            // A program of its own would have a client of its own.
            let report = client.once("report", every);
            tokio::spawn(async move {
                for _ in 0..8 {
                    // `None`: another program has run it in this period.
                    if let Some(Err(error)) = report.try_run(|run| job(program, run)).await? {
                        println!("  it failed: {error}");
                    }
                    tokio::time::sleep(every / 3).await;
                }
                Ok::<_, bowline::Error>(())
            })
        })
        .collect();
    for program in programs {
        program.await??;
    }

    let last = client.once("report", every).inspect().await?.last;
    if let Some(last) = last {
        println!("the last run began {:?} ago and ended as {:?}", last.began_ago, last.outcome);
    }
    client.close().await;
    Ok(())
}
