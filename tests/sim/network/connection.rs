//! A process's end of its link, as a connection.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bowline::{Acknowledged, Call, Connection, ConnectionError, Notice, Reply, Topology};
use futures::StreamExt;
use futures::channel::mpsc;
use futures::stream::BoxStream;

use super::subscription::{Feed, Subject};
use super::{COMMAND_TIMEOUT, Link};
use crate::executor::WORLD;
use crate::request::Request;

/// A process's own handle: closes the link when dropped, as a socket would.
#[derive(Debug)]
pub struct SimConnection(pub Arc<Link>);

impl Drop for SimConnection {
    fn drop(&mut self) {
        self.close();
    }
}

impl SimConnection {
    fn follow(&self, subject: Subject) -> BoxStream<'static, Notice> {
        let (sender, receiver) = mpsc::unbounded();
        let feed = Feed::new(&self.0, subject, sender);
        self.0.machine.process(WORLD).spawn(Box::pin(feed.run()));
        receiver.boxed()
    }
}

/// A call, counted while it is under way.
struct UnderWay<'a>(&'a Link);

impl<'a> UnderWay<'a> {
    fn new(link: &'a Link) -> Self {
        link.note(|state| {
            state.calls += 1;
            state.under_way += 1;
            state.most = state.most.max(state.under_way);
        });
        Self(link)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.note(|state| state.under_way -= 1);
    }
}

#[async_trait]
impl Connection for SimConnection {
    fn inner(&self) -> Option<&dyn Connection> {
        None
    }

    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
        let link = &self.0;
        link.backend.called(call);
        let _call = UnderWay::new(link);
        let within = call.within.map_or(COMMAND_TIMEOUT, |within| within.min(COMMAND_TIMEOUT));
        link.run(Request::new(&call), false, within).await
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        futures::future::join_all(calls.iter().map(|call| self.run(*call))).await
    }

    async fn run_acknowledged(
        &self,
        calls: &[Call<'_>],
        replicas: u32,
        within: Duration,
    ) -> Vec<Result<Acknowledged, ConnectionError>> {
        let link = &self.0;
        calls.iter().for_each(|call| link.backend.called(*call));
        let _call = UnderWay::new(link);
        link.run_acknowledged(calls, false, replicas, within).await
    }

    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        Ok(self.follow(Subject::Channel(channel.to_owned())))
    }

    async fn watch_key(&self, key: &str, _: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        Ok(self.follow(Subject::Key(key.to_owned())))
    }

    fn topology(&self) -> Topology {
        Topology::single_server()
    }

    fn close(&self) {
        self.0.kill();
    }
}
