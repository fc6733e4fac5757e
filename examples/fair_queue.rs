//! Two processes share a lock. Their tasks are served in order of arrival, across both processes.
//!
//! `cargo run --example fair_queue`: on the Redis at `REDIS_URL`, else on a `redis-server` of its own.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

#[path = "support/mod.rs"]
mod support;

use std::error::Error;
use std::process::Command;
use std::time::Duration;

use bowline::Client;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // The second process runs this program too.
    if let [_, name, url] = &*std::env::args().collect::<Vec<_>>() {
        return work(&bowline::tokio::connect(url).await?, name).await;
    }
    let server = support::Server::find()?;
    let client = bowline::tokio::connect(&server.url).await?;
    let turn = client.lock("turn");

    // Hold the lock until all tasks wait, so that the queue decides the order.
    let start = turn.lock().await?;
    let mut second = Command::new(std::env::current_exe()?).args(["second", &server.url]).spawn()?;
    let here = client.clone();
    let first = tokio::spawn(async move { work(&here, "first ").await.map_err(|error| error.to_string()) });
    while turn.inspect().await?.waiters < 6 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    start.release().await?;

    first.await??;
    let status = tokio::task::spawn_blocking(move || second.wait()).await??;
    client.close().await;
    if status.success() { Ok(()) } else { Err(status.to_string().into()) }
}

/// Three tasks of a process queue one after the other.
async fn work(client: &Client, process: &str) -> Result<(), Box<dyn Error>> {
    let mut tasks = Vec::new();
    for number in 1..=3 {
        let (turn, process) = (client.lock("turn"), process.to_owned());
        tasks.push(tokio::spawn(async move {
            let guard = turn.lock().fair().await?;
            println!("  {process} process, task {number}: token {}", guard.token());
            guard.release().await
        }));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for task in tasks {
        task.await??;
    }
    Ok(())
}
