//! The lock on smol: two tasks take turns.
//!
//! `cargo run --example smol --features smol`
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

mod support;

use std::error::Error;

use bowline::Lock;

fn main() -> Result<(), Box<dyn Error>> {
    let server = support::Server::find()?;
    smol::block_on(work(&server.url))
}

async fn work(url: &str) -> Result<(), Box<dyn Error>> {
    let client = bowline::smol::connect(url).await?;
    let tasks = ["left", "right"].map(|name| smol::spawn(take_turns(client.lock("door"), name)));
    for task in tasks {
        task.await?;
    }
    client.close().await;
    Ok(())
}

async fn take_turns(lock: Lock, name: &str) -> bowline::Result<()> {
    for _ in 0..3 {
        let guard = lock.lock().fair().await?;
        println!("{name:>5} holds the lock, token {}", guard.token());
        guard.release().await?;
    }
    Ok(())
}
