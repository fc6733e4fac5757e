//! Many readers or one writer. The writer downgrades to a reader, and the last reader upgrades to the writer. An
//! upgradable reader waits for the others, and nobody writes before it.
//!
//! `cargo run --example read_write`, without a Redis, or on the one at `REDIS_URL`.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

#[path = "support/client.rs"]
mod support;

use std::error::Error;
use std::time::Duration;

use bowline::Upgrade;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = support::connect().await?;
    let prices = client.rw_lock("prices");

    let writing = prices.write().await?;
    println!("writing alone, token {}", writing.token());
    let readers: Vec<_> = (1..=3)
        .map(|number| {
            let prices = prices.clone();
            tokio::spawn(async move {
                let reading = prices.read().timeout(Duration::from_secs(10)).await?;
                println!("  reader {number} reads what token {} wrote", reading.token());
                reading.release().await
            })
        })
        .collect();
    while prices.inspect().await?.waiters < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    // The waiting readers are granted too, and no writer gets in between.
    let reading = writing.downgrade().await?;
    println!("reading beside the others");
    for reader in readers {
        reader.await??;
    }

    match reading.try_upgrade().await? {
        Upgrade::Writing(writing) => {
            println!("the only reader left: writing again, token {}", writing.token());
            writing.release().await?;
        }
        Upgrade::Shared(reading) => {
            println!("another reader holds the lock: release, and wait to write");
            reading.release().await?;
        }
    }

    // Reads first, and writes only if there is something to write. No other writer comes in between.
    let reading = prices.upgradable_read().await?;
    let other = prices.read().await?;
    println!("one upgradable reader beside a plain one");
    let upgrade = tokio::spawn(async move { reading.upgrade().await });
    while prices.inspect().await?.waiters < 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    other.release().await?;
    let writing = upgrade.await??;
    println!("the other has gone: writing, token {}", writing.token());
    writing.release().await?;
    client.close().await;
    Ok(())
}
