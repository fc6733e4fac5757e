//! A master dies, the sentinels promote a replica, and the client that waits for the lock gets it there.
//!
//! `cargo run --example sentinel` starts a master, a replica and three sentinels of its own; with `REDIS_URL`, which
//! must then be `redis-sentinel://host:26379,host:26379/?master=name`, it uses those, and no master dies.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

#[path = "support/sentinels.rs"]
mod sentinels;

use std::error::Error;
use std::time::Duration;

use bowline::Config;
use sentinels::Sentinels;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut servers = Sentinels::find()?;
    // A failover takes seconds, so operations must be retried for longer than that.
    let config = Config::builder().retry_timeout(Duration::from_secs(30)).build()?;
    let client = bowline::tokio::connect_with(&servers.url, config.clone()).await?;
    let other = bowline::tokio::connect_with(&servers.url, config).await?;

    let guard = client.lock("orders:42").lock().await?;
    println!("held with token {}", guard.token());
    let waiting = tokio::spawn(async move { other.lock("orders:42").lock().await });
    while client.lock("orders:42").inspect().await?.waiters == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    servers.kill_master()?;
    // There is no master yet: the release is retried until there is one.
    guard.release().await?;
    let next = waiting.await??;
    println!("held by the other client, on the new master, with token {}", next.token());
    next.release().await?;
    Ok(())
}
