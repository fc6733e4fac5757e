//! Three programs stand for election. One leads, publishes where it serves, and resigns; a fourth one watches.
//!
//! `cargo run --example election`, without a Redis, or on the one at `REDIS_URL`.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

#[path = "support/client.rs"]
mod support;

use std::error::Error;
use std::time::Duration;

use bowline::ElectionChange;
use futures::StreamExt;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = support::connect().await?;

    let programs: Vec<_> = (1..=3)
        .map(|program| {
            // A program of its own would have a client of its own.
            let election = client.election("scheduler").label(format!("program {program}"));
            tokio::spawn(async move {
                // After a loss it would campaign again, and call this anew.
                election
                    .lead(|term| async move {
                        term.publish(&format!("http://10.0.0.{program}:8080/")).await?;
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        Ok::<_, bowline::Error>(())
                    })
                    .await?
            })
        })
        .collect();

    let mut changes = client.election("scheduler").changes();
    let mut ended = 0;
    while ended < programs.len() {
        match changes.next().await.ok_or("the client is closed")?? {
            ElectionChange::Elected(leader) => println!("{} leads, with token {}", leader.label, leader.term),
            ElectionChange::Published(leader) => println!("  it serves at {}", leader.value.unwrap_or_default()),
            ElectionChange::Ended { term } => {
                println!("  term {term} has ended");
                ended += 1;
            }
            other => println!("{other:?}"),
        }
    }
    for program in programs {
        program.await??;
    }
    client.close().await;
    Ok(())
}
