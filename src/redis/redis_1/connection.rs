//! The connection that a client uses.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use futures::stream::BoxStream;

use super::shared::Shared;
use super::{calls, subscriber};
use crate::connection::{Call, Connection, ConnectionError, Notice, Reply, Topology};
use crate::in_turn::run_in_turn;

/// A connection whose calls go over the application's own connection. Made by the functions of
/// [`redis_1`](crate::redis_1).
///
/// Dropping it ends its subscriptions. The application's connection stays.
pub struct ApplicationConnection {
    shared: Arc<Shared>,
    topology: Topology,
    subscriptions: AtomicU64,
}

impl ApplicationConnection {
    pub(super) fn new(shared: Arc<Shared>, topology: Topology) -> Self {
        Self { shared, topology, subscriptions: AtomicU64::new(0) }
    }
}

#[async_trait]
impl Connection for ApplicationConnection {
    fn inner(&self) -> Option<&dyn Connection> {
        None
    }

    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
        calls::run(&self.shared, &call).await
    }

    /// The calls are queued one after the other, and redis-rs writes what is in its queue together.
    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        run_in_turn(self, calls).await
    }

    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        let number = self.subscriptions.fetch_add(1, Ordering::Relaxed);
        subscriber::subscribe(&self.shared, channel, number).await
    }

    fn topology(&self) -> Topology {
        self.topology
    }

    fn reconnects(&self) -> u64 {
        self.shared.reconnects.load(Ordering::Relaxed)
    }

    fn close(&self) {
        self.shared.close();
    }
}

impl Drop for ApplicationConnection {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for ApplicationConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApplicationConnection")
            .field("kind", &self.shared.kind)
            .field("closed", &self.shared.is_closed())
            .finish_non_exhaustive()
    }
}
