//! A process's end of its link, as a connection.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bowline::{Call, Connection, ConnectionError, Notice, Reply, Topology};
use futures::StreamExt;
use futures::channel::mpsc;
use futures::future::{Either, select};
use futures::stream::BoxStream;

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

#[async_trait]
impl Connection for SimConnection {
    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
        let link = &self.0;
        link.backend.called(call);
        let request = Request::new(&call);
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
                        link.cut(true, true, Duration::from_millis(10));
                    }
                    answer
                }
                _ if link.look(|state| state.closed) => Err(ConnectionError::Closed),
                _ => Err(ConnectionError::Unknown("the connection broke".to_owned())),
            }
        };
        let attempt = Box::pin(attempt);
        let outcome = match select(attempt, link.executor.sleep(COMMAND_TIMEOUT)).await {
            Either::Left((answer, _)) => return answer,
            Either::Right(((), attempt)) => drop(attempt),
        };
        let () = outcome;
        if sent {
            // No answer: the connection is given up, as the adapters do.
            link.cut(true, false, Duration::from_millis(10));
            Err(ConnectionError::Unknown("no answer in time".to_owned()))
        } else {
            Err(ConnectionError::Unreachable("down".to_owned()))
        }
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        futures::future::join_all(calls.iter().map(|call| self.run(*call))).await
    }

    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        let link = self.0.clone();
        let (sender, receiver) = mpsc::unbounded();
        let channel = channel.to_owned();
        let first = link.backend.listen(&channel);
        let world = link.machine.process(WORLD);
        self.0.machine.process(WORLD).spawn(Box::pin(async move {
            let mut messages = first;
            loop {
                let subscription = link.look(|state| state.messages);
                let broken = link.until(|state| state.messages != subscription || state.closed);
                let mut broken = Box::pin(broken);
                let (forward, mut on_the_way) = mpsc::unbounded::<(Duration, Notice)>();
                let carrier = (link.clone(), sender.clone(), world.clone());
                world.spawn(Box::pin(async move {
                    let (link, sender, world) = carrier;
                    while let Some((due, notice)) = on_the_way.next().await {
                        world.sleep(due.saturating_sub(link.machine.now())).await;
                        if link.look(|state| state.messages == subscription && !state.mute && !state.closed) {
                            let _ = sender.unbounded_send(notice);
                        }
                    }
                }));
                while let Either::Left((Some(notice), _)) = select(messages.next(), broken.as_mut()).await {
                    let usual = link.machine.now() + link.delay();
                    let due = link.look(|state| (usual + state.lag).max(state.last_message));
                    link.change(|state| {
                        state.last_message = due;
                        if !state.lag.is_zero() {
                            state.disturbed = state.disturbed.max(due);
                        }
                    });
                    let _ = forward.unbounded_send((due, notice));
                }
                // The server notices: nobody counts as a receiver any more.
                drop(messages);
                if link.look(|state| state.closed) || sender.unbounded_send(Notice::Gap).is_err() {
                    return;
                }
                link.until(|state| !state.messages_down || state.closed).await;
                world.sleep(link.delay()).await;
                messages = link.backend.listen(&channel);
                world.sleep(link.delay()).await;
                if sender.unbounded_send(Notice::Gap).is_err() {
                    return;
                }
            }
        }));
        Ok(receiver.boxed())
    }

    fn topology(&self) -> Topology {
        Topology { publish_counts_everyone: true }
    }

    fn close(&self) {
        self.0.kill();
    }
}
