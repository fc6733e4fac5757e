//! Re-entry: a function that holds a lock calls another one that acquires the same lock.
//!
//! `cargo run --example reentrant`, without a Redis, or on the one at `REDIS_URL`.

#[path = "support/client.rs"]
mod support;

use std::error::Error;
use std::time::Duration;

use bowline::{ErrorKind, Holder, Lock};

/// Callers may or may not hold the lock already.
async fn audit(account: &Lock) -> bowline::Result<()> {
    let guard = account.lock().timeout(Duration::from_secs(1)).await?;
    println!("  audit under token {}", guard.token());
    guard.release().await
}

async fn transfer(account: &Lock) -> bowline::Result<()> {
    let guard = account.lock().await?;
    println!("  transfer under token {}", guard.token());
    audit(account).await?;
    // The release in `audit` has not released the lock.
    assert!(guard.is_valid());
    guard.release().await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = support::connect().await?;
    let account = client.lock("account:7");

    // Async tasks move between threads, so a thread cannot identify the caller. In this scope, all acquisitions have
    // one holder.
    println!("in the scope of a holder:");
    Holder::new().scope(transfer(&account)).await?;

    // Without a holder, each acquisition is independent, and the inner one waits for the outer one.
    println!("without a holder:");
    match transfer(&account).await {
        Err(error) if error.kind() == ErrorKind::TimedOut => println!("  {error:#}"),
        other => println!("unexpected: {other:?}"),
    }

    client.close().await;
    Ok(())
}
