//! Requests on their way to the server, and its answers on the way back.

use std::sync::Arc;
use std::time::Duration;

use bowline::{ConnectionError, Reply};
use futures::StreamExt;
use futures::channel::{mpsc, oneshot};

use super::{COMMAND_TIMEOUT, Link, State};
use crate::executor::WORLD;
use crate::nodes::Node;
use crate::request::Request;

/// When it reaches the server, what it asks, and who waits for the answer.
pub(super) type Sent = (Duration, Request, oneshot::Sender<Result<Reply, ConnectionError>>);

impl Link {
    /// Sends the request on its way. It goes on even if nobody waits for the answer any more.
    pub(super) fn send(self: &Arc<Self>, request: Request) -> oneshot::Receiver<Result<Reply, ConnectionError>> {
        let (answer, answered) = oneshot::channel();
        let arrival = (self.machine.now() + self.delay()).max(self.look(|state| state.last_arrival));
        let pipe = self.note(|state| {
            state.last_arrival = arrival;
            match &state.pipe {
                Some((connection, pipe)) if *connection == state.commands => pipe.clone(),
                _ => {
                    let (sender, receiver) = mpsc::unbounded();
                    state.pipe = Some((state.commands, sender.clone()));
                    self.machine.process(WORLD).spawn(Box::pin(self.clone().carry(
                        state.commands,
                        state.node,
                        receiver,
                    )));
                    sender
                }
            }
        });
        let _ = pipe.unbounded_send((arrival, request, answer));
        answered
    }

    /// The server's end of one connection: executes what comes, in the order in which it was sent.
    async fn carry(self: Arc<Self>, connection: u64, node: Node, mut requests: mpsc::UnboundedReceiver<Sent>) {
        let world = self.machine.process(WORLD);
        while let Some((arrival, request, answer)) = requests.next().await {
            world.sleep(arrival.saturating_sub(self.machine.now())).await;
            if self.look(|state| state.mute && state.commands == connection) {
                // Held until the connection breaks, then lost with all that follows.
                self.until(|state| state.commands != connection).await;
                return;
            }
            if self.look(|state| state.commands != connection) {
                // The connection broke on the way: never executed, with all that follows, or later than anybody expects.
                if self.machine.random(|random| random.one_in(2)) {
                    return;
                }
                let late = self.machine.random(|random| random.between(Duration::ZERO, COMMAND_TIMEOUT * 2));
                world.sleep(late).await;
            }
            world.sleep(self.backend.frozen_for()).await;
            let given_up = answer.is_canceled() || self.look(|state| state.commands != connection);
            let reply = request.with_call(|call| self.backend.execute(node, self.process, call, given_up));
            let request = Arc::new(request);
            let twice = self.look(|state| state.twice) && self.machine.random(|random| random.one_in(20));
            if twice {
                let late = self.machine.random(|random| random.between(Duration::ZERO, COMMAND_TIMEOUT * 2));
                let (link, sleep, request) = (self.clone(), world.sleep(late), request.clone());
                world.spawn(Box::pin(async move {
                    sleep.await;
                    let _ = request.with_call(|call| link.backend.execute(node, link.process, call, true));
                }));
            }
            let back = (self.machine.now() + self.delay()).max(self.look(|state| state.last_reply));
            self.note(|state| state.last_reply = back);
            let (link, sleep) = (self.clone(), world.sleep(back.saturating_sub(self.machine.now())));
            world.spawn(Box::pin(async move {
                sleep.await;
                let open =
                    |state: &State| state.commands == connection && state.silent != Some(connection) && !state.mute;
                if link.look(open) {
                    if answer.send(reply.clone()).is_ok()
                        && let Ok(reply) = reply
                    {
                        request.with_call(|call| link.backend.answered(call, &reply));
                    }
                } else {
                    link.until(|state| state.commands != connection).await;
                }
            }));
        }
    }
}
