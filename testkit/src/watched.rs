//! A connection that tells what it is asked to do.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bowline::{Acknowledged, Call, Connection, ConnectionError, Notice, Reply, Topology};
use futures::stream::BoxStream;

/// How calls are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sent {
    Alone,
    InBatch,
    /// In a batch that waits for replicas.
    Acknowledged,
}

/// Is told what a connection is asked to do.
pub trait Watch: Debug + Send + Sync + 'static {
    /// These calls are about to be sent together.
    fn sent(&self, calls: &[Call<'_>], sent: Sent);

    /// These calls are answered. If the caller drops them before, this is not called.
    fn answered(&self, calls: &[Call<'_>]) {
        let _ = calls;
    }

    fn subscribes(&self);
}

#[derive(Debug)]
pub struct Watched<C, W> {
    pub inner: C,
    pub watch: Arc<W>,
}

#[async_trait]
impl<C: Connection, W: Watch> Connection for Watched<C, W> {
    fn inner(&self) -> Option<&dyn Connection> {
        Some(&self.inner)
    }

    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
        self.watch.sent(&[call], Sent::Alone);
        let answer = self.inner.run(call).await;
        self.watch.answered(&[call]);
        answer
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        self.watch.sent(calls, Sent::InBatch);
        let answers = self.inner.run_batch(calls).await;
        self.watch.answered(calls);
        answers
    }

    async fn run_acknowledged(
        &self,
        calls: &[Call<'_>],
        replicas: u32,
        within: Duration,
    ) -> Vec<Result<Acknowledged, ConnectionError>> {
        self.watch.sent(calls, Sent::Acknowledged);
        let answers = self.inner.run_acknowledged(calls, replicas, within).await;
        self.watch.answered(calls);
        answers
    }

    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        self.watch.subscribes();
        self.inner.subscribe(channel).await
    }

    fn topology(&self) -> Topology {
        self.inner.topology()
    }

    fn close(&self) {
        self.inner.close();
    }
}
