//! The calls over a connection that is made in the background.

use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;

use super::{Later, LaterState};
use crate::connection::{Acknowledged, Call, Connection, ConnectionError, Notice, Reply, Topology};
use crate::mutex::lock;
use crate::runtime::timeout;

#[async_trait]
impl Connection for Later {
    fn inner(&self) -> Option<&dyn Connection> {
        self.made.get().map(|made| &**made)
    }

    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
        match self.made.get() {
            Some(made) => made.run(call).await,
            None => Err(self.not_executed(&[call], None).await),
        }
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        match self.made.get() {
            Some(made) => made.run_batch(calls).await,
            None => {
                let error = self.not_executed(calls, None).await;
                calls.iter().map(|_| Err(error.clone())).collect()
            }
        }
    }

    async fn run_acknowledged(
        &self,
        calls: &[Call<'_>],
        replicas: u32,
        within: Duration,
    ) -> Vec<Result<Acknowledged, ConnectionError>> {
        match self.made.get() {
            Some(made) => made.run_acknowledged(calls, replicas, within).await,
            None => {
                let error = self.not_executed(calls, Some(within)).await;
                calls.iter().map(|_| Err(error.clone())).collect()
            }
        }
    }

    /// Fails after the first attempt that fails: the caller has something to report, and subscribes again.
    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        if self.made.get().is_none() {
            timeout(&self.executor, self.timeout, self.attempted()).await;
        }
        match self.made.get() {
            Some(made) => made.subscribe(channel).await,
            None => Err(self.missing().unwrap_or(ConnectionError::Closed)),
        }
    }

    /// That of a single server, until the server's is known.
    fn topology(&self) -> Topology {
        self.made.get().map_or(Topology::single_server(), |made| made.topology())
    }

    fn why_down(&self, key: &str) -> Option<ConnectionError> {
        match self.made.get() {
            Some(made) => made.why_down(key),
            None => self.told(key),
        }
    }

    fn close(&self) {
        *lock(&self.state) = LaterState::Closed;
        // Unlocked: foreign code. An attempt that succeeds meanwhile closes what it has made.
        if let Some(made) = self.made.get() {
            made.close();
        }
        self.changed.notify(usize::MAX);
    }
}
