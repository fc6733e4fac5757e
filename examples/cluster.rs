//! Locks in a Redis Cluster, and what becomes of them when a master dies.
//!
//! `cargo run --example cluster` starts four nodes of its own; it needs a `redis-server` on the `PATH`.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

#[path = "support/cluster.rs"]
mod support;

use std::time::{Duration, Instant};

use futures::future::try_join_all;

use support::{Cluster, Outcome};

#[tokio::main]
async fn main() -> Outcome<()> {
    println!("starting three masters and a replica");
    let mut cluster = Cluster::start()?;
    let client = bowline::tokio::connect(&cluster.url()).await?;

    // Each name belongs to one master. The client sends each call there.
    let locks: Vec<_> = (0..30).map(|n| client.lock(&format!("order:{n}"))).collect();
    let guards = try_join_all(locks.iter().map(|lock| lock.lock().into_future())).await?;
    println!("30 locks are held, on three masters");

    println!("the first master is killed");
    cluster.kill_master()?;
    let start = Instant::now();
    for guard in guards {
        // Calls wait until the replica has taken over. It has the hold, which the master had copied to it.
        assert!(guard.is_valid());
        guard.release().await?;
    }
    println!("all 30 are released after {:.1} s", start.elapsed().as_secs_f32());

    for lock in &locks {
        lock.lock().timeout(Duration::from_secs(10)).await?.release().await?;
    }
    println!("and every name can be locked again");
    client.close().await;
    Ok(())
}
