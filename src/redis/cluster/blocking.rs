//! The last calls after the runtime has ended: each master gets a blocking socket of its own.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use futures::stream::BoxStream;

use super::super::blocking::Blocking;
use super::super::dial::deadline::Deadline;
use super::host::Host;
use super::map::SlotMap;
use super::place::Place;
use super::seeds::Seeds;
use crate::connection::{Call, Connection, ConnectionError, Notice, Reply, Topology};
use crate::mutex::lock;
use crate::protocol::slot;

/// Sends each call to the master that the map names. It follows no redirection: if a slot has moved, its holds are not
/// released, and end with their leases.
pub(super) struct BlockingCluster {
    map: Arc<SlotMap>,
    topology: Topology,
    places: HashMap<Host, Place>,
    deadline: Deadline,
    /// The connections, dialled when they are first needed. `None`: the node could not be reached.
    nodes: Mutex<HashMap<Host, Option<Arc<Blocking>>>>,
}

impl BlockingCluster {
    pub(super) fn new(map: Arc<SlotMap>, seeds: &Seeds, topology: Topology, within: Duration) -> Option<Self> {
        let deadline = Deadline::after(within)?;
        let place = |host: &Host| (host.clone(), Place::new(&seeds.access, host.clone()));
        let places = map.masters().iter().map(place).collect();
        Some(Self { map, topology, places, deadline, nodes: Mutex::default() })
    }

    fn node(&self, call: &Call<'_>) -> Result<Arc<Blocking>, ConnectionError> {
        let owner = call.keys.first().and_then(|key| self.map.owner(slot::of(key)));
        let place = owner.and_then(|owner| Some((owner, self.places.get(owner)?)));
        let (owner, place) = place.ok_or_else(|| ConnectionError::Unreachable("no node serves the slot".to_owned()))?;
        let mut nodes = lock(&self.nodes);
        // One part for each node that is not dialled yet, and one for the calls.
        let parts = self.places.len() - nodes.len() + 1;
        let node = nodes.entry(owner.clone()).or_insert_with(|| {
            let login = self.deadline.share(u32::try_from(parts).unwrap_or(u32::MAX)).ok()?;
            Some(Arc::new(Blocking::connect_by(place, login, self.deadline)?))
        });
        node.clone().ok_or_else(|| ConnectionError::Unreachable(owner.to_string()))
    }
}

#[async_trait]
impl Connection for BlockingCluster {
    fn inner(&self) -> Option<&dyn Connection> {
        None
    }

    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
        self.node(&call)?.run(call).await
    }

    /// Calls that are polled together go to their node in one write.
    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        join_all(calls.iter().map(|call| self.run(*call))).await
    }

    /// No one could read a subscription of this connection.
    async fn subscribe(&self, _channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        Err(ConnectionError::Closed)
    }

    fn topology(&self) -> Topology {
        self.topology
    }

    fn close(&self) {
        for node in lock(&self.nodes).drain().filter_map(|(_, node)| node) {
            node.close();
        }
    }
}

impl fmt::Debug for BlockingCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingCluster").field("masters", &self.map.masters()).finish_non_exhaustive()
    }
}
