//! How a holder learns that it must stop, and four ways to listen.
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

    // `protect` runs work, and drops it when the lease is lost.
    let guard = job.lock().expires_after(Duration::from_millis(200)).await?;
    match guard.protect(tokio::time::sleep(Duration::from_secs(60))).await {
        Err(error) if error.kind() == ErrorKind::Lost => println!("protect: {error:#}"),
        other => println!("unexpected: {other:?}"),
    }
    drop(guard);

    // `lost` is a future, for a `select!` of one's own. Here an operator takes the lock away.
    let guard = job.lock().await?;
    job.force_release().await?;
    tokio::select! {
        loss = guard.lost() => println!("lost: {loss}"),
        () = tokio::time::sleep(Duration::from_secs(60)) => unreachable!("the revocation is told at once"),
    }

    // `is_valid` costs nothing: before every step that must not be done by two.
    println!("is_valid: {}", guard.is_valid());
    // What was done under a lost lease may have been done beside somebody else: the release says so.
    match guard.release().await {
        Err(error) => println!("release: {error:#}"),
        Ok(()) => println!("unexpected: it was held to the end"),
    }

    // `run` is all of it: acquire, work that is stopped by a loss, release.
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
