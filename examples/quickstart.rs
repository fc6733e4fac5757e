//! Four tasks share a lock. Then a lease is lost, and its holder is notified.
//!
//! `cargo run --example quickstart` needs no Redis: it runs bowline's scripts on the embedded server, in this process.
//! `REDIS_URL=redis://127.0.0.1/ cargo run --example quickstart` does the same on Redis.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

#[path = "support/client.rs"]
mod support;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use bowline::{Client, Loss};

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let client = support::connect().await?;
    for warning in client.warnings() {
        println!("warning: {warning}");
    }

    share(&client).await?;
    lose(&client).await?;

    client.close().await;
    Ok(())
}

/// Four tasks want the same lock. Each release grants it to the next task, with a larger token.
async fn share(client: &Client) -> Result<(), Box<dyn Error>> {
    println!("\nFour tasks share the lock \"quickstart\":");
    let tasks: Vec<_> = (1..=4)
        .map(|number| {
            let lock = client.lock("quickstart");
            tokio::spawn(async move {
                let guard = lock.lock().timeout(Duration::from_secs(30)).await?;
                println!("  task {number} holds it, token {}", guard.token());
                // While the task works, the watchdog renews the lease. If that fails, the work is stopped.
                guard.protect(tokio::time::sleep(Duration::from_millis(100))).await?;
                guard.release().await
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(())
}

/// A holder can lose its lease. It is notified, and the token lets the storage reject what it still writes.
async fn lose(client: &Client) -> Result<(), Box<dyn Error>> {
    println!("\nAn operator takes the lock from its holder:");
    let lock = client.lock("quickstart");
    let guard = lock.lock().await?;
    let old = guard.token();
    let fence = lock.force_release().await?.ok_or("the lock was free")?;

    let loss = guard.lost().await;
    assert_eq!(loss, Loss::Revoked);
    println!("  the holder of token {old} is notified: {loss}");
    println!("  storage that has seen token {fence} rejects its stale writes, because {old} < {fence}");
    assert!(old < fence && !guard.is_valid());
    Ok(())
}
