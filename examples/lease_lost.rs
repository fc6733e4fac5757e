//! How a holder learns that its lease is lost: by `protect`, `lost`, `is_valid`, the error of `release`, and `run`.
//!
//! `cargo run --example lease_lost`, without a Redis, or on the one at `REDIS_URL`.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

#[path = "support/client.rs"]
mod support;

use std::error::Error;
use std::time::Duration;

use bowline::ErrorKind;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = support::connect().await?;
    let job = client.lock("job");

    // `protect` runs work, and drops it if the lease is lost.
    let guard = job.lock().expires_after(Duration::from_millis(200)).await?;
    match guard.protect(tokio::time::sleep(Duration::from_secs(60))).await {
        Err(error) if error.kind() == ErrorKind::Lost => println!("protect: {error:#}"),
        other => println!("unexpected: {other:?}"),
    }
    drop(guard);

    // `lost` is a future, for example for a `select!`. Here an operator takes the lock away.
    let guard = job.lock().await?;
    job.force_release().await?;
    tokio::select! {
        loss = guard.lost() => println!("lost: {loss}"),
        () = tokio::time::sleep(Duration::from_secs(60)) => unreachable!("the holder is notified at once"),
    }

    // `is_valid` sends no command. Call it before each step that two holders must not do.
    println!("is_valid: {}", guard.is_valid());
    // `release` fails after a loss: another holder may have worked at the same time.
    match guard.release().await {
        Err(error) => println!("release: {error:#}"),
        Ok(()) => println!("unexpected: the lease was not lost"),
    }

    // `run` does all of it: it acquires, stops the work on a loss, and releases.
    match job
        .lock()
        .expires_after(Duration::from_millis(200))
        .run(|_| tokio::time::sleep(Duration::from_secs(60)))
        .await
    {
        Err(error) if error.kind() == ErrorKind::Lost => println!("run: {error:#}"),
        other => println!("unexpected: {other:?}"),
    }

    client.close().await;
    Ok(())
}
