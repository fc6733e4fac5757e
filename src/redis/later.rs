//! A connection whose server type is still unknown. A background task finds it out.
//!
//! A call that waits for the first connect is not handed on afterwards: it was made before the topology and the clock
//! of the server were known, on which its arguments depend. The operations of a client therefore wait before they make
//! their calls ([`FirstConnect::made_within`]).

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::backoff::Backoff;
use crate::config::Config;
use crate::connection::first_connect::FirstConnect;
use crate::connection::{Acknowledged, Call, Connection, ConnectionError, Notice, Reply, Topology};
use crate::error::Result;
use crate::runtime::Executor;
use crate::tuning::RECONNECT;

/// Dropping it ends the task and closes the connection that the task has made.
pub(super) struct InBackground {
    first: Arc<FirstConnect>,
    /// From then on, calls are handed to this connection.
    made: Arc<OnceLock<Box<dyn Connection>>>,
    /// The longest wait of a call.
    timeout: Duration,
}

impl InBackground {
    pub(super) fn start(
        executor: &Arc<dyn Executor>,
        target: String,
        config: &Config,
        seed: u64,
        attempt: impl Fn() -> BoxFuture<'static, Result<Box<dyn Connection>>> + Send + 'static,
    ) -> Self {
        let (first, made) = (Arc::new(FirstConnect::new(target, Arc::clone(executor))), Arc::default());
        let place = Arc::clone(&made);
        let take_up = move |made| drop(OnceLock::set(&place, made));
        let making = Arc::clone(&first).make(Backoff::new(RECONNECT, seed), attempt, take_up);
        executor.spawn(Box::pin(async move {
            making.await;
        }));
        Self { first, made, timeout: config.command_timeout }
    }

    /// The connection, if there is one.
    fn made(&self) -> Option<&dyn Connection> {
        self.made.get().map(|made| &**made)
    }

    /// The error of a call that finds no connection, once there is one or it is of no use to wait any longer.
    async fn not_executed(&self, calls: &[Call<'_>], within: Option<Duration>) -> ConnectionError {
        let limit = calls.iter().filter_map(|call| call.within).chain(within).fold(self.timeout, Duration::min);
        let only_now = || ConnectionError::Unreachable("connected after the call was made".to_owned());
        self.first.made_within(limit).await.err().unwrap_or_else(only_now)
    }

    /// For those who subscribe. Fails after the first attempt that fails: the caller has something to report, and
    /// subscribes again.
    async fn made_within_timeout(&self) -> std::result::Result<&dyn Connection, ConnectionError> {
        if self.made().is_none() {
            self.first.attempted_within(self.timeout).await;
        }
        self.made().ok_or_else(|| self.first.missing().unwrap_or(ConnectionError::Closed))
    }

    /// As [`not_executed`](Self::not_executed), for each of the calls.
    async fn none_executed<T>(
        &self,
        calls: &[Call<'_>],
        within: Option<Duration>,
    ) -> Vec<std::result::Result<T, ConnectionError>> {
        let error = self.not_executed(calls, within).await;
        calls.iter().map(|_| Err(error.clone())).collect()
    }
}

#[async_trait]
impl Connection for InBackground {
    fn inner(&self) -> Option<&dyn Connection> {
        self.made()
    }

    async fn run(&self, call: Call<'_>) -> std::result::Result<Reply, ConnectionError> {
        match self.made() {
            Some(made) => made.run(call).await,
            None => Err(self.not_executed(&[call], None).await),
        }
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<std::result::Result<Reply, ConnectionError>> {
        match self.made() {
            Some(made) => made.run_batch(calls).await,
            None => self.none_executed(calls, None).await,
        }
    }

    async fn run_acknowledged(
        &self,
        calls: &[Call<'_>],
        replicas: u32,
        within: Duration,
    ) -> Vec<std::result::Result<Acknowledged, ConnectionError>> {
        match self.made() {
            Some(made) => made.run_acknowledged(calls, replicas, within).await,
            None => self.none_executed(calls, Some(within)).await,
        }
    }

    async fn subscribe(&self, channel: &str) -> std::result::Result<BoxStream<'static, Notice>, ConnectionError> {
        self.made_within_timeout().await?.subscribe(channel).await
    }

    async fn watch_key(
        &self,
        key: &str,
        inbox: &str,
    ) -> std::result::Result<BoxStream<'static, Notice>, ConnectionError> {
        self.made_within_timeout().await?.watch_key(key, inbox).await
    }

    /// That of a single server, until the server's is known.
    fn topology(&self) -> Topology {
        self.made().map_or(Topology::single_server(), Connection::topology)
    }

    fn why_down(&self, key: &str) -> Option<ConnectionError> {
        match self.made() {
            Some(made) => made.why_down(key),
            None => self.first.told(),
        }
    }

    fn close(&self) {
        self.first.close();
        // An attempt that succeeds meanwhile drops what it has made.
        if let Some(made) = self.made() {
            made.close();
        }
    }
}

impl Drop for InBackground {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for InBackground {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InBackground").field("missing", &self.first.missing()).field("made", &self.made()).finish()
    }
}

#[cfg(test)]
mod tests;
