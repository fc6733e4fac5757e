//! A custom `Connection`: a wrapper that records which scripts run and how long the server takes.
//!
//! `cargo run --example custom_connection`, without a Redis.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bowline::{
    Acknowledged, BoxStream, Call, Client, Config, Connection, ConnectionError, Notice, Reply, Topology, Warning,
    async_trait,
};

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

    // A wrapper forwards the methods that have a default as well. Without them the client would have no acknowledged holds, would
    // renew holds on several nodes as if they were on one, would release nothing after its runtime is gone, and would not say why there is
    // no connection.
    async fn run_acknowledged(
        &self,
        calls: &[Call<'_>],
        replicas: u32,
        within: Duration,
    ) -> Vec<Result<Acknowledged, ConnectionError>> {
        self.inner.run_acknowledged(calls, replicas, within).await
    }

    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        self.inner.subscribe(channel).await
    }

    fn topology(&self) -> Topology {
        self.inner.topology()
    }

    fn node_of(&self, key: &str) -> u64 {
        self.inner.node_of(key)
    }

    fn warnings(&self) -> Vec<Warning> {
        self.inner.warnings()
    }

    fn reconnects(&self) -> u64 {
        self.inner.reconnects()
    }

    fn why_down(&self, key: &str) -> Option<ConnectionError> {
        self.inner.why_down(key)
    }

    fn without_runtime(&self, within: Duration) -> Option<Box<dyn Connection>> {
        self.inner.without_runtime(within)
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
