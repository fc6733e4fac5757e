//! A client whose commands are counted.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bowline::{
    Acknowledged, Call, Client, Connection, ConnectionError, Notice, RedisConnection, Reply, Topology, Warning,
};
use futures::stream::BoxStream;

use super::env::lock;

/// A client whose commands are counted, from after its creation on.
#[derive(Clone, Debug)]
pub struct TestClient {
    pub client: Client,
    pub counts: Arc<Counts>,
}

impl Deref for TestClient {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

/// Everything that a client had its connection do.
#[derive(Debug, Default)]
pub struct Counts {
    runs: Mutex<BTreeMap<&'static str, u64>>,
    batches: AtomicU64,
    acknowledged: AtomicU64,
    subscribes: AtomicU64,
}

impl Counts {
    /// Scripts sent, those in batches too.
    pub fn total(&self) -> u64 {
        lock(&self.runs).values().sum()
    }

    /// How often this script was sent.
    pub fn of(&self, script: &str) -> u64 {
        assert!(bowline::Script::all().any(|known| known.name() == script), "no script is called {script}");
        lock(&self.runs).get(script).copied().unwrap_or(0)
    }

    /// By script.
    pub fn all(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.runs).clone()
    }

    pub fn batches(&self) -> u64 {
        self.batches.load(Ordering::SeqCst)
    }

    /// Batches that waited for replicas.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::SeqCst)
    }

    /// Since the connection was made; never reset.
    pub fn subscribes(&self) -> u64 {
        self.subscribes.load(Ordering::SeqCst)
    }

    pub fn reset(&self) {
        lock(&self.runs).clear();
        self.batches.store(0, Ordering::SeqCst);
        self.acknowledged.store(0, Ordering::SeqCst);
    }

    fn count(&self, call: &Call<'_>) {
        *lock(&self.runs).entry(call.script.name()).or_default() += 1;
    }
}

/// Counts what it forwards.
#[derive(Debug)]
pub struct Counting<C = RedisConnection> {
    pub inner: C,
    pub counts: Arc<Counts>,
}

#[async_trait]
impl<C: Connection> Connection for Counting<C> {
    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
        self.counts.count(&call);
        self.inner.run(call).await
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        self.counts.batches.fetch_add(1, Ordering::SeqCst);
        calls.iter().for_each(|call| self.counts.count(call));
        self.inner.run_batch(calls).await
    }

    async fn run_acknowledged(
        &self,
        calls: &[Call<'_>],
        replicas: u32,
        within: Duration,
    ) -> Vec<Result<Acknowledged, ConnectionError>> {
        self.counts.acknowledged.fetch_add(1, Ordering::SeqCst);
        calls.iter().for_each(|call| self.counts.count(call));
        self.inner.run_acknowledged(calls, replicas, within).await
    }

    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        self.counts.subscribes.fetch_add(1, Ordering::SeqCst);
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

    fn without_runtime(&self, within: Duration) -> Option<Box<dyn Connection>> {
        self.inner.without_runtime(within)
    }

    fn close(&self) {
        self.inner.close();
    }
}
