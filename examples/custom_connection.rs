//! A custom `Connection`: a wrapper that records which scripts run and how long the server takes.
//!
//! `cargo run --example custom_connection`, without a Redis.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bowline::{BoxStream, Call, Client, Config, Connection, ConnectionError, Notice, Reply, Topology, async_trait};

#[derive(Debug)]
struct Recording<C> {
    inner: C,
    calls: Mutex<Vec<(&'static str, Duration)>>,
}

impl<C> Recording<C> {
    fn take(&self) -> Vec<(&'static str, Duration)> {
        self.calls.lock().map(|mut calls| std::mem::take(&mut *calls)).unwrap_or_default()
    }
}

#[async_trait]
impl<C: Connection> Connection for Recording<C> {
    // What this wrapper leaves out, such as acknowledged calls and the good-bye without a runtime, goes to the inner
    // connection.
    fn inner(&self) -> Option<&dyn Connection> {
        Some(&self.inner)
    }

    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
        let (name, start) = (call.script.name(), Instant::now());
        let reply = self.inner.run(call).await;
        if let Ok(mut calls) = self.calls.lock() {
            calls.push((name, start.elapsed()));
        }
        reply
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        self.inner.run_batch(calls).await
    }

    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        self.inner.subscribe(channel).await
    }

    fn topology(&self) -> Topology {
        self.inner.topology()
    }

    fn close(&self) {
        self.inner.close();
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let executor = Arc::new(bowline::tokio::Tokio::current()?);
    // On Redis: `bowline::tokio::open(executor.clone(), url, &config).await?`.
    let inner = bowline::embedded::Server::new().connect(executor.clone());
    let connection = Arc::new(Recording { inner, calls: Mutex::default() });
    let client = Client::connect(executor, connection.clone(), Config::default()).await?;
    println!("connecting checked the server with {} scripts", connection.take().len());

    client.lock("orders").lock().await?.release().await?;
    for (script, took) in connection.take() {
        println!("  {script} took {took:?}");
    }
    client.close().await;
    Ok(())
}
