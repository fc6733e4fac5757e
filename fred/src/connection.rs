//! The connection that a client uses.

use std::fmt;
use std::sync::Arc;

use bowline::{BoxStream, Call, Connection, ConnectionError, Notice, Reply, Topology, async_trait, run_in_turn};

use crate::shared::Shared;
use crate::{calls, subscription};

/// A connection whose calls go over the application's own client of fred. Made by [`from_client`](crate::from_client).
///
/// Dropping it ends its subscriptions. The application's client stays.
pub struct FredConnection {
    shared: Arc<Shared>,
    topology: Topology,
}

impl FredConnection {
    pub(crate) fn new(shared: Arc<Shared>, topology: Topology) -> Self {
        Self { shared, topology }
    }
}

#[async_trait]
impl Connection for FredConnection {
    fn inner(&self) -> Option<&dyn Connection> {
        None
    }

    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
        calls::run(&self.shared, &call).await
    }

    /// The calls are queued one after the other, and fred writes what is in its queue together.
    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        run_in_turn(self, calls).await
    }

    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        subscription::subscribe(&self.shared, channel).await
    }

    fn topology(&self) -> Topology {
        self.topology
    }

    fn reconnects(&self) -> u64 {
        self.shared.reconnects()
    }

    fn close(&self) {
        self.shared.close();
    }
}

impl Drop for FredConnection {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for FredConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FredConnection")
            .field("topology", &self.topology)
            .field("closed", &self.shared.is_closed())
            .finish_non_exhaustive()
    }
}
