//! A process's end of its links to a cluster, as a connection.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bowline::{Acknowledged, Call, Connection, ConnectionError, Notice, Reply, Topology};
use futures::StreamExt;
use futures::channel::mpsc;
use futures::future::join_all;
use futures::stream::BoxStream;

use super::feed::Feed;
use super::{Cluster, sharded};
use crate::executor::WORLD;
use crate::network::{Backend, COMMAND_TIMEOUT};
use crate::nodes::{slot, slot_of};
use crate::request::Request;

/// A process's own handle: closes the links when dropped, as sockets would be.
#[derive(Debug)]
pub struct SimCluster(pub Arc<Cluster>);

impl Drop for SimCluster {
    fn drop(&mut self) {
        self.close();
    }
}

#[async_trait]
impl Connection for SimCluster {
    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
        self.0.server.called(call);
        let within = call.within.map_or(COMMAND_TIMEOUT, |within| within.min(COMMAND_TIMEOUT));
        let send = |link: Arc<crate::network::Link>, asking, left| {
            let request = Request::new(&call);
            Box::pin(async move { link.run(request, asking, left).await }) as _
        };
        self.0.follow(slot(call.keys[0]), within, &send).await
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        join_all(calls.iter().map(|call| self.run(*call))).await
    }

    async fn run_acknowledged(
        &self,
        calls: &[Call<'_>],
        replicas: u32,
        within: Duration,
    ) -> Vec<Result<Acknowledged, ConnectionError>> {
        let one = |call: &Call<'_>| {
            self.0.server.called(*call);
            let (request, slot) = (Arc::new(Request::new(call)), slot(call.keys[0]).to_owned());
            async move {
                let send = |link: Arc<crate::network::Link>, asking, left| {
                    let request = request.clone();
                    Box::pin(async move {
                        let (keys, args) = (request.keys(), request.args());
                        let call = [Call::new(request.script, &keys, &args)];
                        link.run_acknowledged(&call, asking, replicas, left).await.remove(0)
                    }) as _
                };
                self.0.follow(&slot, within.min(COMMAND_TIMEOUT), &send).await
            }
        };
        join_all(calls.iter().map(one)).await
    }

    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        if let Some(slot) = slot_of(channel) {
            return sharded::subscribe(&self.0, slot, channel).await;
        }
        let (sender, receiver) = mpsc::unbounded();
        let feed = Feed::new(&self.0, channel, sender);
        self.0.machine.process(WORLD).spawn(Box::pin(feed.run()));
        Ok(receiver.boxed())
    }

    fn topology(&self) -> Topology {
        match self.0.server.nodes.is_sharded() {
            true => Topology::sharded_cluster(),
            false => Topology::cluster(),
        }
    }

    fn node_of(&self, key: &str) -> u64 {
        self.0.look(|state| state.map.owner(slot(key))) as u64
    }

    fn close(&self) {
        self.0.kill();
    }
}
