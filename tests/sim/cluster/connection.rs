//! The library's own connection to a cluster, and what the judge has to know of its calls.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bowline::{
    Acknowledged, Call, Config, Connection, ConnectionError, Executor, Notice, RedisConnection, Reply, Topology,
    dialled,
};
use futures::stream::BoxStream;

use super::answers::address;
use super::{Cluster, Network, asked};
use crate::network::Backend;

/// Connects a process.
pub async fn connect(cluster: Arc<Cluster>, executor: Arc<dyn Executor>, config: Config) -> SimCluster {
    let url = format!("redis-cluster://{},{}", address(0), address(1));
    let streams = Arc::new(Network(cluster.clone()));
    let router = dialled::open(executor, streams, &url, &config).await;
    SimCluster { router: router.expect("the nodes can be reached"), cluster }
}

#[derive(Debug)]
pub struct SimCluster {
    router: RedisConnection,
    cluster: Arc<Cluster>,
}

impl Drop for SimCluster {
    fn drop(&mut self) {
        self.close();
    }
}

/// Calls that the process has made and whose answers it awaits.
struct Awaited<'a>(&'a Cluster, Vec<String>);

impl<'a> Awaited<'a> {
    fn new(cluster: &'a Cluster, calls: &[Call<'_>]) -> Self {
        calls.iter().for_each(|call| cluster.server.called(*call));
        let asked: Vec<String> = calls.iter().map(asked).collect();
        cluster.change(|state| {
            for call in &asked {
                *state.awaited.entry(call.clone()).or_default() += 1;
            }
        });
        Self(cluster, asked)
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.0.change(|state| {
            for call in &self.1 {
                if let Some(count) = state.awaited.get_mut(call) {
                    *count -= 1;
                    if *count == 0 {
                        state.awaited.remove(call);
                    }
                }
            }
        });
    }
}

impl SimCluster {
    fn answered<'r>(&self, calls: &[Call<'_>], replies: impl Iterator<Item = Option<&'r Reply>>) {
        for (call, reply) in calls.iter().zip(replies) {
            if let Some(reply) = reply {
                self.cluster.server.answered(*call, reply);
            }
        }
    }
}

#[async_trait]
impl Connection for SimCluster {
    fn inner(&self) -> Option<&dyn Connection> {
        None
    }

    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
        let _awaited = Awaited::new(&self.cluster, &[call]);
        let reply = self.router.run(call).await;
        self.answered(&[call], std::iter::once(reply.as_ref().ok()));
        reply
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        let _awaited = Awaited::new(&self.cluster, calls);
        let replies = self.router.run_batch(calls).await;
        self.answered(calls, replies.iter().map(|reply| reply.as_ref().ok()));
        replies
    }

    async fn run_acknowledged(
        &self,
        calls: &[Call<'_>],
        replicas: u32,
        within: Duration,
    ) -> Vec<Result<Acknowledged, ConnectionError>> {
        let _awaited = Awaited::new(&self.cluster, calls);
        let replies = self.router.run_acknowledged(calls, replicas, within).await;
        self.answered(calls, replies.iter().map(|reply| reply.as_ref().ok().map(|acknowledged| &acknowledged.reply)));
        replies
    }

    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        self.router.subscribe(channel).await
    }

    fn topology(&self) -> Topology {
        self.router.topology()
    }

    fn node_of(&self, key: &str) -> u64 {
        self.router.node_of(key)
    }

    fn slot_of_each_server(&self) -> Option<Vec<u16>> {
        self.router.slot_of_each_server()
    }

    fn why_down(&self, key: &str) -> Option<ConnectionError> {
        self.router.why_down(key)
    }

    fn reconnects(&self) -> u64 {
        self.router.reconnects()
    }

    /// Sockets of the system are not simulated.
    fn without_runtime(&self, _: Duration) -> Option<Box<dyn Connection>> {
        None
    }

    fn close(&self) {
        self.router.close();
        self.cluster.change(|state| state.closed = true);
    }
}
