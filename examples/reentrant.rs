//! A function that locks calls another that takes the same lock: a holder makes them one.
//!
//! `cargo run --example reentrant`, without a Redis, or on the one at `REDIS_URL`.

#[path = "support/client.rs"]
mod support;

use std::error::Error;
use std::time::Duration;

use bowline::{ErrorKind, Holder, Lock};

/// Called on its own, or by somebody who has the lock already.
async fn audit(account: &Lock) -> bowline::Result<()> {
    let guard = account.lock().timeout(Duration::from_secs(1)).await?;
    println!("  audit under token {}", guard.token());
    guard.release().await
}

async fn transfer(account: &Lock) -> bowline::Result<()> {
    let guard = account.lock().await?;
    println!("  transfer under token {}", guard.token());
    audit(account).await?;
    // The audit's release gave nothing away.
    assert!(guard.is_valid());
    guard.release().await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = support::connect().await?;
    let account = client.lock("account:7");

    // Async code has no thread that could say who asks. In a scope it is this holder, whatever is awaited inside.
    println!("in the scope of a holder:");
    Holder::new().scope(transfer(&account)).await?;

    // Without one, each acquisition stands for itself, and the inner one waits for the outer.
    println!("without a holder:");
    match transfer(&account).await {
        Err(error) if error.kind() == ErrorKind::TimedOut => println!("  {error:#}"),
        other => println!("unexpected: {other:?}"),
    }

    client.close().await;
    Ok(())
}
