//! At most two uploads at a time, across all programs. Then two permits in one acquisition.
//!
//! `cargo run --example semaphore`, without a Redis, or on the one at `REDIS_URL`.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

#[path = "support/client.rs"]
mod support;

use std::error::Error;
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = support::connect().await?;
    let uploads = client.semaphore("uploads", 2);

    let tasks: Vec<_> = (1..=6)
        .map(|number| {
            let uploads = uploads.clone();
            tokio::spawn(async move {
                let permit = uploads.acquire().await?;
                println!("  upload {number} runs");
                // If the lease is lost, another holder may have the permit. The upload is then stopped.
                permit.protect(tokio::time::sleep(Duration::from_millis(50))).await?;
                permit.release().await
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    println!("all done, {} of {} permits are free", uploads.available().await?, uploads.inspect().await?.limit);

    // Both permits or none. Requests for few permits do not starve a request for many.
    let both = uploads.acquire_many(2).timeout(Duration::from_secs(10)).await?;
    println!("{} permits in one hold", both.count());
    assert!(uploads.try_acquire().await?.is_none());
    both.release().await?;
    client.close().await;
    Ok(())
}
