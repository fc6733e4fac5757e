//! One node of a cluster, as a link sees it.

use std::sync::Arc;
use std::time::Duration;

use bowline::{Call, ConnectionError, Notice, Reply};
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::network::{Backend, Way};
use crate::nodes::Node;
use crate::server::SimServer;

pub struct At {
    pub server: Arc<SimServer>,
    pub node: Node,
}

impl Backend for At {
    fn primary(&self) -> Node {
        self.node
    }

    fn execute(&self, node: Node, process: usize, call: Call<'_>, way: Way) -> Result<Reply, ConnectionError> {
        self.server.execute(node, process, call, way)
    }

    fn called(&self, call: Call<'_>) {
        self.server.called(call);
    }

    fn answered(&self, call: Call<'_>, reply: &Reply) {
        self.server.answered(call, reply);
    }

    fn listen(&self, node: Node, channel: &str) -> BoxStream<'static, Notice> {
        self.server.listen(node, channel)
    }

    fn frozen_for(&self) -> Duration {
        self.server.frozen_for()
    }

    fn restarts(&self) -> u64 {
        self.server.restarts()
    }

    fn written(&self, node: Node) -> u64 {
        self.server.written(node)
    }

    fn acknowledged(
        &self,
        node: Node,
        number: u64,
        replicas: u32,
        until: Duration,
    ) -> BoxFuture<'_, Result<u32, ConnectionError>> {
        self.server.acknowledged(node, number, replicas, until)
    }
}
