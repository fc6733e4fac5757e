//! A process's end of its link, as a connection.

use std::sync::Arc;

use async_trait::async_trait;
use bowline::{Call, Connection, ConnectionError, Notice, Reply, Topology};
use futures::StreamExt;
use futures::channel::mpsc;
use futures::future::{Either, select};
use futures::stream::BoxStream;

use super::subscription::Feed;
use super::{COMMAND_TIMEOUT, Link, MOMENT};
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
    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
        let link = &self.0;
        link.backend.called(call);
        let _call = UnderWay::new(link);
        let request = Request::new(&call);
        let within = call.within.map_or(COMMAND_TIMEOUT, |within| within.min(COMMAND_TIMEOUT));
        let mut sent = false;
        let attempt = async {
            link.until(|state| !state.down || state.closed).await;
            if link.look(|state| state.closed) {
                return Err(ConnectionError::Closed);
            }
            let connection = link.look(|state| state.commands);
            sent = true;
            let answered = link.send(request);
            let broken = std::pin::pin!(link.until(|state| state.commands != connection || state.closed));
            match select(answered, broken).await {
                Either::Left((Ok(answer), _)) => {
                    if let Err(ConnectionError::Refused { code, .. }) = &answer
                        && matches!(&**code, "READONLY" | "MASTERDOWN" | "UNBLOCKED")
                    {
                        // It is no primary any more. Behind the address there may be another one.
                        link.cut(true, false, MOMENT);
                    }
                    answer
                }
                _ if link.look(|state| state.closed) => Err(ConnectionError::Closed),
                _ => Err(ConnectionError::Unknown("the connection broke".to_owned())),
            }
        };
        let attempt = Box::pin(attempt);
        let outcome = match select(attempt, link.executor.sleep(within)).await {
            Either::Left((answer, _)) => return answer,
            Either::Right(((), attempt)) => drop(attempt),
        };
        let () = outcome;
        if sent {
            // No answer: the connection is given up, as the adapters do.
            link.cut(true, false, MOMENT);
            Err(ConnectionError::Unknown("no answer in time".to_owned()))
        } else {
            Err(ConnectionError::Unreachable("down".to_owned()))
        }
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        futures::future::join_all(calls.iter().map(|call| self.run(*call))).await
    }

    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        let (sender, receiver) = mpsc::unbounded();
        let feed = Feed::new(&self.0, channel, sender);
        self.0.machine.process(WORLD).spawn(Box::pin(feed.run()));
        Ok(receiver.boxed())
    }

    fn topology(&self) -> Topology {
        Topology::single_server()
    }

    fn close(&self) {
        self.0.kill();
    }
}
