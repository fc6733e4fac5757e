//! The lock on tokio: two tasks take turns.
//!
//! `cargo run --example tokio`
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

mod support;

use std::error::Error;

use bowline::{Client, Lock};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = support::Server::find()?;
    work(&server.url).await
}

async fn work(url: &str) -> Result<(), Box<dyn Error>> {
    let client = bowline::tokio::connect(url).await?;
    // The client is closed even if the work fails, so nothing of it stays in Redis.
    let work = |client: Client| async move {
        let tasks = ["left", "right"].map(|name| tokio::spawn(take_turns(client.lock("door"), name)));
        for task in tasks {
            task.await??;
        }
        Ok(())
    };
    client.scope(work).await
}

async fn take_turns(lock: Lock, name: &str) -> bowline::Result<()> {
    for _ in 0..3 {
        let guard = lock.lock().fair().await?;
        println!("{name:>5} holds the lock, token {}", guard.token());
        guard.release().await?;
    }
    Ok(())
}
