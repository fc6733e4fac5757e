//! A grant that a replica has acknowledged survives the primary: on the promoted replica, no other client gets the
//! lock.
//!
//! `cargo run --example acknowledged` starts a primary and a replica of its own. With `REDIS_URL` it uses that server,
//! which needs a replica, and no server dies.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

#[path = "support/replicated.rs"]
mod replicated;

use std::error::Error;
use std::time::Duration;

use bowline::{Config, ErrorKind};
use replicated::Replicated;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut servers = Replicated::find()?;
    // Each grant and each renewal counts once one replica has it.
    let config = Config::builder().acknowledged_by(1).retry_timeout(Duration::from_secs(1)).build()?;
    let client = bowline::tokio::connect_with(&servers.url, config).await?;
    let guard = client.lock("orders:42").lock().await?;
    println!("held with token {}, and a replica knows", guard.token());

    // More replicas than exist, so the grant is released again.
    match client.lock("orders:43").lock().acknowledged_by(100).await {
        Err(error) if error.kind() == ErrorKind::Unacknowledged => println!("as expected: {error}"),
        other => println!("unexpected: {other:?}"),
    }

    if let Some(url) = servers.fail_over()? {
        println!("the primary is dead, and the replica is promoted");
        let other = bowline::tokio::connect(&url).await?;
        match other.lock("orders:42").try_lock().await? {
            None => println!("another client finds the lock held: the hold has survived"),
            Some(guard) => println!("two guards: {guard:?}"),
        }
        // The guard's own client has only the URL of the dead primary. With Sentinel or Cluster it would find the new
        // one.
        drop(guard);
        return Ok(());
    }
    guard.release().await?;
    Ok(())
}
