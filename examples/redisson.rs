//! A lock that Java programs hold by Redisson, with and without fencing tokens, and how to hold it together with
//! bowline's own lock while a service moves.
//!
//! `cargo run --example redisson`, without a Redis, or on the one at `REDIS_URL`. A Java program would take the same
//! locks by `redisson.getLock("orders:42")` and `redisson.getFencedLock("invoices")`.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

#[path = "support/client.rs"]
mod support;

use std::time::Duration;

#[tokio::main]
async fn main() -> bowline::Result<()> {
    let client = support::connect().await?;
    let redisson = client.redisson();

    let orders = redisson.lock("orders:42");
    let guard = orders.lock().timeout(Duration::from_secs(2)).await?;
    if let Some(holder) = orders.inspect().await?.holder {
        println!("in Redis, the owner is {} with {} entry", holder.owner, holder.entries);
    }
    // A Java program waits now, and is woken by the message of the release.
    guard.protect(async { println!("working on order 42") }).await?;
    guard.release().await?;

    for _ in 0..2 {
        let guard = redisson.fenced_lock("invoices").lock().await?;
        println!("writing invoices with token {}, which Java counts on from", guard.token());
        guard.release().await?;
    }

    // While a service moves to bowline's own lock: both, always in this order.
    let old = orders.lock().await?;
    let new = client.lock("orders:42").lock().await?;
    println!("both are held, and the token is {}", new.token());
    new.release().await?;
    old.release().await?;
    client.close().await;
    Ok(())
}
