//! Calls that wait for replicas: on a connection of their own, which belongs to the connection for commands.

use std::sync::Arc;
use std::time::Duration;

use bowline::{Acknowledged, Call, ConnectionError, Reply};
use futures::channel::oneshot;
use futures::future::{Either, select};

use super::{COMMAND_TIMEOUT, Link, State, Way};
use crate::executor::WORLD;
use crate::nodes::Node;
use crate::request::Request;

type Answer = Result<Acknowledged, ConnectionError>;

/// The calls that are sent together, with a `WAIT` behind them.
struct Batch {
    requests: Vec<Request>,
    asking: bool,
    replicas: u32,
    /// How long the `WAIT` may take.
    longest: Duration,
    /// When it reaches the server.
    arrival: Duration,
    turn: Turn,
    answer: oneshot::Sender<Vec<Answer>>,
}

impl Link {
    /// Fails as a whole if it fails: whatever has happened to the calls, the caller asks again.
    pub async fn run_acknowledged(
        self: &Arc<Self>,
        calls: &[Call<'_>],
        asking: bool,
        replicas: u32,
        within: Duration,
    ) -> Vec<Answer> {
        let failed = |error: ConnectionError| calls.iter().map(|_| Err(error.clone())).collect();
        let within = within.min(COMMAND_TIMEOUT);
        let (mut sent, requests) = (false, calls.iter().map(Request::new).collect());
        let attempt = Box::pin(async {
            self.until(|state| !state.down || state.closed).await;
            let (closed, connection, node) = self.look(|state| (state.closed, state.commands, state.node));
            if closed {
                return failed(ConnectionError::Closed);
            }
            sent = true;
            // The time that is left for the answer, as in the adapters.
            let longest = within.saturating_sub(2 * self.longest).max(within / 2);
            let (answer, answered) = oneshot::channel();
            let arrival = self.machine.now() + self.delay();
            let turn = Turn::take(self, (connection, replicas));
            let batch = Batch { requests, asking, replicas, longest, answer, arrival, turn };
            self.machine.process(WORLD).spawn(Box::pin(self.clone().carry_acknowledged(connection, node, batch)));
            let broken = std::pin::pin!(self.until(|state| state.commands != connection || state.closed));
            match select(answered, broken).await {
                Either::Left((Ok(answers), _)) => answers,
                _ if self.look(|state| state.closed) => failed(ConnectionError::Closed),
                _ => failed(ConnectionError::Unknown("the connection broke".to_owned())),
            }
        });
        match select(attempt, self.executor.sleep(within)).await {
            Either::Left((answers, _)) => return answers,
            Either::Right(((), attempt)) => drop(attempt),
        }
        failed(match sent {
            true => ConnectionError::Unknown("no answer in time".to_owned()),
            false => ConnectionError::Unreachable("down".to_owned()),
        })
    }

    /// The server's end: executes the calls, then waits for what was last written on this connection.
    async fn carry_acknowledged(self: Arc<Self>, connection: u64, node: Node, batch: Batch) {
        let Batch { requests, asking, replicas, longest, answer, arrival, turn } = batch;
        let (world, restarts) = (self.machine.process(WORLD), self.backend.restarts());
        world.sleep(arrival.saturating_sub(self.machine.now())).await;
        turn.comes().await;
        if !self.goes_on(connection, restarts).await {
            return;
        }
        let given_up = answer.is_canceled() || self.look(|state| state.commands != connection);
        let mut last =
            self.look(|state| Some(state.acknowledging).filter(|(of, _)| *of == connection)).map_or(0, |(_, n)| n);
        let replies: Vec<Result<Reply, ConnectionError>> = requests
            .iter()
            .map(|request| {
                let before = self.backend.written(node);
                let reply = request
                    .with_call(|call| self.backend.execute(node, self.process, call, Way { asking, late: given_up }));
                let after = self.backend.written(node);
                if after != before {
                    last = after;
                }
                reply
            })
            .collect();
        self.note(|state| state.acknowledging = (connection, last));
        let count = self.backend.acknowledged(node, last, replicas, self.machine.now() + longest).await;
        drop(turn);
        world.sleep(self.delay()).await;
        let open = |state: &State| state.commands == connection && state.silent != Some(connection) && !state.mute;
        if !self.look(open) {
            return self.until(|state| state.commands != connection).await;
        }
        let acknowledged = |reply: Result<Reply, ConnectionError>| Ok(Acknowledged::new(reply?, count.clone()?));
        let answers: Vec<Answer> = replies.into_iter().map(acknowledged).collect();
        if answer.send(answers.clone()).is_ok() {
            for (request, answer) in requests.iter().zip(answers) {
                if let Ok(answer) = answer {
                    request.with_call(|call| self.backend.answered(call, &answer.reply));
                }
            }
        }
    }
}

/// The place of a batch on its connection: it is executed once those before it have waited for their replicas.
struct Turn {
    link: Arc<Link>,
    on: (u64, u32),
    number: u64,
}

impl Turn {
    fn take(link: &Arc<Link>, on: (u64, u32)) -> Self {
        let number = link.note(|state| {
            let (sent, _) = state.turns.entry(on).or_default();
            *sent += 1;
            *sent
        });
        Self { link: link.clone(), on, number }
    }

    async fn comes(&self) {
        self.link.until(|state| state.turns.get(&self.on).is_some_and(|(_, over)| over + 1 == self.number)).await;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.link.change(|state| {
            if let Some((_, over)) = state.turns.get_mut(&self.on) {
                *over = self.number.max(*over);
            }
        });
    }
}
