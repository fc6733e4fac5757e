//! Requests on their way to the server, and its answers on the way back.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bowline::{ConnectionError, Reply};
use futures::StreamExt;
use futures::channel::{mpsc, oneshot};
use futures::future::{Either, select};

use super::{COMMAND_TIMEOUT, Link, MOMENT, State, Way};
use crate::executor::WORLD;
use crate::nodes::Node;
use crate::request::Request;

/// When it reaches the server, what it asks, whether an `ASKING` stands before it, and who waits for the answer.
pub(super) type Sent = (Duration, Request, bool, oneshot::Sender<Result<Reply, ConnectionError>>);

impl Link {
    /// Runs a call within that time. No answer: the connection is given up, as the adapters do.
    pub async fn run(
        self: &Arc<Self>,
        request: Request,
        asking: bool,
        within: Duration,
    ) -> Result<Reply, ConnectionError> {
        let mut sent = false;
        let attempt = Box::pin(async {
            self.until(|state| !state.down || state.closed).await;
            if self.look(|state| state.closed) {
                return Err(ConnectionError::Closed);
            }
            let connection = self.look(|state| state.commands);
            sent = true;
            let answered = self.send(request, asking);
            let broken = pin!(self.until(|state| state.commands != connection || state.closed));
            match select(answered, broken).await {
                Either::Left((Ok(answer), _)) => {
                    if let Err(ConnectionError::Refused { code, .. }) = &answer
                        && matches!(&**code, "READONLY" | "MASTERDOWN" | "UNBLOCKED")
                    {
                        // The server is no longer the primary. Another one may be behind the address.
                        self.cut(true, false, MOMENT);
                    }
                    answer
                }
                _ if self.look(|state| state.closed) => Err(ConnectionError::Closed),
                _ => Err(ConnectionError::Unknown("the connection broke".to_owned())),
            }
        });
        match select(attempt, self.executor.sleep(within)).await {
            Either::Left((answer, _)) => return answer,
            Either::Right(((), attempt)) => drop(attempt),
        }
        if sent {
            self.cut(true, false, MOMENT);
            Err(ConnectionError::Unknown("no answer in time".to_owned()))
        } else {
            Err(ConnectionError::Unreachable("down".to_owned()))
        }
    }

    /// Sends the request on its way. It goes on even if the answer is not awaited any more.
    fn send(self: &Arc<Self>, request: Request, asking: bool) -> oneshot::Receiver<Result<Reply, ConnectionError>> {
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
        let _ = pipe.unbounded_send((arrival, request, asking, answer));
        answered
    }

    /// Whether what has arrived on that connection is executed, at a server that had restarted so often when it was
    /// made. Returns when it is.
    pub(super) async fn goes_on(&self, connection: u64, restarts: u64) -> bool {
        let world = self.machine.process(WORLD);
        if self.look(|state| state.mute && state.commands == connection) {
            // The call is held until the connection breaks. Then it is lost with all later calls.
            self.until(|state| state.commands != connection).await;
            return false;
        }
        if self.look(|state| state.commands != connection) {
            // The connection broke on the way. The call and all later ones are never executed, or executed very late.
            if self.machine.random(|random| random.one_in(2)) {
                return false;
            }
            let late = self.machine.random(|random| random.between(Duration::ZERO, COMMAND_TIMEOUT * 2));
            world.sleep(late).await;
        }
        world.sleep(self.backend.frozen_for()).await;
        self.backend.restarts() == restarts
    }

    /// The server's end of one connection: executes what comes, in the order in which it was sent.
    async fn carry(self: Arc<Self>, connection: u64, node: Node, mut requests: mpsc::UnboundedReceiver<Sent>) {
        let world = self.machine.process(WORLD);
        let restarts = self.backend.restarts();
        while let Some((arrival, request, asking, answer)) = requests.next().await {
            world.sleep(arrival.saturating_sub(self.machine.now())).await;
            if !self.goes_on(connection, restarts).await {
                return;
            }
            let given_up = answer.is_canceled() || self.look(|state| state.commands != connection);
            let reply = request
                .with_call(|call| self.backend.execute(node, self.process, call, Way { asking, late: given_up }));
            let request = Arc::new(request);
            let twice = self.look(|state| state.twice) && self.machine.random(|random| random.one_in(20));
            if twice {
                let late = self.machine.random(|random| random.between(Duration::ZERO, COMMAND_TIMEOUT * 2));
                let (link, sleep, request) = (self.clone(), world.sleep(late), request.clone());
                world.spawn(Box::pin(async move {
                    sleep.await;
                    if link.backend.restarts() == restarts {
                        let _ = request.with_call(|call| {
                            link.backend.execute(node, link.process, call, Way { asking, late: true })
                        });
                    }
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
