//! A client whose commands are counted.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bowline::{Call, Client, RedisConnection};

use super::env::lock;
use super::watched::{Sent, Watch, Watched};

/// A client whose commands are counted. The counts begin after its creation.
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
}

/// Counts what it forwards.
pub type Counting<C = RedisConnection> = Watched<C, Counts>;

impl Watch for Counts {
    fn sent(&self, calls: &[Call<'_>], sent: Sent) {
        match sent {
            Sent::Alone => {}
            Sent::InBatch => drop(self.batches.fetch_add(1, Ordering::SeqCst)),
            Sent::Acknowledged => drop(self.acknowledged.fetch_add(1, Ordering::SeqCst)),
        }
        let mut runs = lock(&self.runs);
        calls.iter().for_each(|call| *runs.entry(call.script.name()).or_default() += 1);
    }

    fn subscribes(&self) {
        self.subscribes.fetch_add(1, Ordering::SeqCst);
    }
}
