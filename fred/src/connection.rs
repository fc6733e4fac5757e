//! The connection that a client uses.

use std::fmt;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;

use bowline::{BoxStream, Call, Connection, ConnectionError, Notice, Reply, Topology, async_trait};
use futures::future::maybe_done;

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
        in_turn(calls.iter().map(|call| calls::run(&self.shared, call))).await
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

/// Polls the futures in their order, and returns their outputs in that order. `join_all` polls many futures in an order
/// of its own.
async fn in_turn<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(|future| Box::pin(maybe_done(future))).collect();
    poll_fn(|context| {
        let mut all = Poll::Ready(());
        for future in &mut futures {
            if future.as_mut().poll(context).is_pending() {
                all = Poll::Pending;
            }
        }
        all
    })
    .await;
    futures.iter_mut().filter_map(|future| future.as_mut().take_output()).collect()
}
