//! One lock over three independent servers, of which any one may fail.
//!
//! `cargo run --example redlock` starts three servers of its own, and kills two of them.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

#[path = "support/masters.rs"]
mod masters;

use std::error::Error;
use std::time::Duration;

use bowline::{Config, ErrorKind, RedLock};
use masters::Masters;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut masters = Masters::start()?;
    // A crash of a holder blocks the others for three seconds. A master that has restarted counts after three seconds,
    // because all holds that it may have lost have ended by then.
    let config = Config::builder()
        .lease(Duration::from_secs(3))
        // At most half of the lease, so that there is time to send a renewal without an answer again.
        .command_timeout(Duration::from_secs(1))
        .retry_timeout(Duration::from_secs(5))
        // So that the program starts while one of them is down.
        .connect_in_background(true)
        .build()?;
    let mut clients = Vec::new();
    for url in &masters.urls {
        clients.push(bowline::tokio::connect_with(url, config.clone()).await?);
    }
    // For how long a master that does not answer may hold up an acquisition: at most a quarter of the lease.
    let locks = RedLock::builder(clients).node_timeout(Duration::from_millis(700)).build()?;

    // These masters have just been started, so the first acquisition waits until they count.
    let guard = locks.lock("orders:42").await?;
    println!("held with token {}", guard.token());
    for (n, master) in locks.inspect("orders:42").await?.masters.iter().enumerate() {
        println!("master {}: {:?}", n + 1, master.vote.as_ref().map(|vote| vote.token));
    }

    masters.kill(0);
    println!("the first master is dead");
    // Send the token with every write: storage that has seen a larger one refuses a late write.
    let token = guard.token();
    guard.protect(async { println!("writing with token {token}") }).await?;
    guard.release().await?;
    let next = locks.lock("orders:42").await?;
    println!("held again, with the larger token {}; {:?}", next.token(), locks.stats());
    assert!(next.token() > token);

    masters.kill(1);
    println!("the second master is dead: there is no majority, and the hold ends with its lease");
    println!("lost: {}", next.lost().await);
    match locks.lock("orders:42").await {
        Err(error) if error.kind() == ErrorKind::Unavailable => println!("as expected: {error}"),
        other => println!("unexpected: {other:?}"),
    }
    Ok(())
}
