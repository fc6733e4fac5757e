//! A cluster: every call goes to the master that serves the slot of its keys.
//!
//! | file | what it does |
//! |---|---|
//! | `map`, `redirect`, `refresh`, `host`, `seeds` | pure: the masters of the slots, what answers mean, when to read the map |
//! | `router` | holds the map and the links |
//! | `node`, `place` | keep one link up |
//! | `reading`, `choice` | read the map, and choose between the views of several nodes |
//! | `calls` | sends each call from node to node until one executes it |
//! | `hand` | hands calls to one node |
//! | `sure` | asks other nodes to confirm late answers |
//! | `subscription` | subscribes at any master, if the servers have no shard channels; watches keys at the masters of their slots |
//! | `shard_probe` | finds out whether the servers have shard channels |
//! | `sharded` | subscribes shard channels at the masters of their slots |
//! | `blocking` | sends the last calls after the runtime has ended |

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::channel::oneshot;
use futures::future::select;
use futures::stream::BoxStream;

use super::dial::Dial;
use super::failure::Failure;
use super::link::Link;
use super::link::calls::Answer;
use super::subscribe::Subject;
use crate::config::Config;
use crate::connection::{Acknowledged, Call, Connection, ConnectionError, Notice, Topology, Warning};
use crate::error::{Error, ErrorKind, Result};
use crate::on_drop::OnDrop;
use crate::protocol::slot;
use crate::runtime::Executor;

pub(super) use self::seeds::Seeds;

use self::blocking::BlockingCluster;
use self::reading::{About, Reader};
use self::refresh::Found;
use self::router::Router;
use self::sharded::Channels;

mod blocking;
mod calls;
mod choice;
mod hand;
mod host;
mod map;
mod node;
mod place;
mod reading;
mod redirect;
mod refresh;
mod router;
mod seeds;
mod shard_probe;
mod sharded;
mod signals;
mod subscription;
mod sure;

/// The connection to a cluster. Dropping it ends its tasks and closes its sockets.
pub(super) struct Cluster {
    router: Arc<Router>,
    subscriptions: AtomicU64,
    /// `None`: the servers have no shard channels, or the user may not use them.
    sharded: Option<Arc<Channels>>,
}

/// Where to find the links to the masters.
pub(super) struct Masters(Arc<Router>);

impl Masters {
    /// The links to the masters of these slots, which may be down.
    pub(super) fn links(&self, slots: &[u16]) -> Vec<Arc<Link>> {
        let node = |slot: &u16| self.0.to_slot(*slot).ok()?.node;
        slots.iter().filter_map(node).map(|node| node.link.clone()).collect()
    }
}

impl Cluster {
    pub(super) fn masters(&self) -> Masters {
        Masters(Arc::clone(&self.router))
    }

    /// Connects by reading the map of slots once.
    pub(super) async fn connect(
        executor: Arc<dyn Executor>,
        dialer: Arc<dyn Dial>,
        seeds: Seeds,
        config: &Config,
        seed: u64,
    ) -> Result<(Self, Vec<Warning>)> {
        let router = Arc::new(Router::new(executor, dialer, seeds, config.clone(), seed));
        // Made before the wait. If this future is dropped, the connection is dropped too, and its task ends.
        let mut cluster = Self { router: Arc::clone(&router), subscriptions: AtomicU64::new(0), sharded: None };
        let (first, connected) = oneshot::channel();
        let close = OnDrop(Arc::clone(&router), |router| router.close());
        router.executor.spawn(Box::pin(async move {
            let router = Arc::clone(&close.0);
            let work = pin!(keep_map(&router, first));
            let _close = close;
            select(work, pin!(router.closed())).await;
        }));
        match connected.await {
            Ok(Ok(About { warnings, sharded })) => {
                if sharded {
                    let channels = Arc::default();
                    sharded::start(&router, &channels);
                    cluster.sharded = Some(channels);
                }
                Ok((cluster, warnings))
            }
            Ok(Err(failure)) => Err(failure.into_error(&router.seeds.to_string(), &config.prefix)),
            Err(oneshot::Canceled) => Err(Error::new(ErrorKind::Closed, "connect")),
        }
    }
}

impl Cluster {
    async fn follow(&self, subject: Subject<'_>) -> std::result::Result<BoxStream<'static, Notice>, ConnectionError> {
        let number = self.subscriptions.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(subscription::subscribe(&self.router, subject, number).await?.boxed())
    }
}

#[async_trait]
impl Connection for Cluster {
    fn inner(&self) -> Option<&dyn Connection> {
        None
    }

    async fn run(&self, call: Call<'_>) -> Answer {
        calls::run(&self.router, &call).await
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Answer> {
        calls::run_batch(&self.router, calls).await
    }

    async fn run_acknowledged(
        &self,
        calls: &[Call<'_>],
        replicas: u32,
        within: Duration,
    ) -> Vec<std::result::Result<Acknowledged, ConnectionError>> {
        calls::run_acknowledged(&self.router, calls, replicas, within).await
    }

    async fn subscribe(&self, channel: &str) -> std::result::Result<BoxStream<'static, Notice>, ConnectionError> {
        if let Some(channels) = self.sharded.as_ref().filter(|_| slot::is_tagged(channel)) {
            return Ok(sharded::subscribe(&self.router, channels, channel).await?.boxed());
        }
        self.follow(Subject::Channel(channel)).await
    }

    async fn watch_key(
        &self,
        key: &str,
        inbox: &str,
    ) -> std::result::Result<BoxStream<'static, Notice>, ConnectionError> {
        self.follow(Subject::Key { key, inbox }).await
    }

    fn topology(&self) -> Topology {
        if self.sharded.is_some() { Topology::sharded_cluster() } else { Topology::cluster() }
    }

    fn node_of(&self, key: &str) -> u64 {
        self.router.number_of(slot::of(key))
    }

    fn slot_of_each_server(&self) -> Option<Vec<u16>> {
        Some(self.router.map().slot_of_each_master())
    }

    fn why_down(&self, key: &str) -> Option<ConnectionError> {
        self.router.link_to(slot::of(key))?.why_down()
    }

    fn reconnects(&self) -> u64 {
        self.router.reconnects()
    }

    fn without_runtime(&self, within: Duration) -> Option<Box<dyn Connection>> {
        Some(Box::new(BlockingCluster::new(self.router.map(), &self.router.seeds, self.topology(), within)?))
    }

    fn close(&self) {
        self.router.close();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.router.fmt(f)
    }
}

/// Reads the map whenever a reading is due, and closes links that are no longer needed. The result of the first reading
/// goes to `first`. If that reading failed, the task ends.
async fn keep_map(router: &Router, first: oneshot::Sender<std::result::Result<About, Failure>>) {
    let mut reader = Reader::default();
    let mut reading = match reader.read(router, true).await {
        Ok(reading) => reading,
        Err(failure) => {
            let _ = first.send(Err(failure));
            return;
        }
    };
    let about = std::mem::take(&mut reading.about);
    router.learn(reading);
    if first.send(Ok(about)).is_err() {
        return;
    }
    loop {
        // The listener exists before the links are checked, so that a new link is not missed.
        let asked = router.signals.asked.listen();
        let early = router.prune();
        if !router.signals.due(asked, early).await {
            continue;
        }
        router.signals.begin();
        let reading = reader.read(router, false).await;
        router.signals.done(reading.map_or(Found::Down, |reading| router.learn(reading)));
    }
}

#[cfg(test)]
mod tests;
