//! A primary, with its connections for commands, for calls that wait for replicas, and for subscriptions.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::channel::oneshot;
use futures::stream::BoxStream;

use super::blocking::Blocking;
use super::failure::Failure;
use super::link::Link;
use super::link::acknowledging::Acknowledging;
use super::link::calls::{self, Answer, Waiting};
use super::link::supervisor;
use super::subscribe::{Subject, at_one_server};
use crate::connection::{Acknowledged, Call, Connection, ConnectionError, Notice, Topology, Warning};

/// Dropping it ends its tasks and closes its sockets.
pub(super) struct Single {
    link: Arc<Link>,
    subscriptions: AtomicU64,
    acknowledging: Acknowledging,
}

impl Single {
    /// Connects. The error is `None` if the runtime was shut down.
    pub(super) async fn connect(link: Arc<Link>) -> Result<(Self, Vec<Warning>), Option<Failure>> {
        // If this future is dropped, the connection is dropped too.
        let (single, connected) = Self::begin(link);
        Ok((single, connected.await?))
    }

    /// Starts the task that connects and keeps the connection up. It ends when the connection is dropped. The second
    /// part of the result resolves when the first attempt is over, as [`connect`](Self::connect) does.
    pub(super) fn begin(link: Arc<Link>) -> (Self, impl Future<Output = Result<Vec<Warning>, Option<Failure>>> + Send) {
        let (first, connected) = oneshot::channel();
        link.executor.spawn(Box::pin(supervisor::supervise(Arc::clone(&link), first)));
        let single = Self { link, subscriptions: AtomicU64::new(0), acknowledging: Acknowledging::default() };
        let connected = async {
            match connected.await {
                Ok(Ok(warnings)) => Ok(warnings),
                Ok(Err(failure)) => Err(Some(failure)),
                Err(oneshot::Canceled) => Err(None),
            }
        };
        (single, connected)
    }
}

impl Single {
    async fn follow(&self, subject: Subject<'_>) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        let number = self.subscriptions.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(at_one_server(&self.link, subject, number).await?.boxed())
    }
}

#[async_trait]
impl Connection for Single {
    fn inner(&self) -> Option<&dyn Connection> {
        None
    }

    async fn run(&self, call: Call<'_>) -> Answer {
        calls::run(&self.link, &call).await
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Answer> {
        calls::run_batch(&self.link, calls).await
    }

    async fn run_acknowledged(
        &self,
        calls: &[Call<'_>],
        replicas: u32,
        within: Duration,
    ) -> Vec<Result<Acknowledged, ConnectionError>> {
        self.acknowledging.run(&self.link, calls, Waiting { replicas, within, asking: false }).await
    }

    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        self.follow(Subject::Channel(channel)).await
    }

    async fn watch_key(&self, key: &str, inbox: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        self.follow(Subject::Key { key, inbox }).await
    }

    fn topology(&self) -> Topology {
        Topology { fails_over: self.link.locate.moves(), ..Topology::single_server() }
    }

    fn reconnects(&self) -> u64 {
        self.link.reconnects.load(Ordering::Relaxed)
    }

    fn why_down(&self, _: &str) -> Option<ConnectionError> {
        self.link.why_down()
    }

    /// Logs in once more, over sockets of std. `None` if that fails or takes too long.
    fn without_runtime(&self, within: Duration) -> Option<Box<dyn Connection>> {
        Some(Box::new(Blocking::connect(&*self.link.locate, within)?))
    }

    fn close(&self) {
        self.link.close();
        self.acknowledging.close();
    }
}

impl Drop for Single {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Single {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.link.fmt(f)
    }
}

#[cfg(test)]
mod tests;
