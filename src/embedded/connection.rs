//! The connection of one client.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{BoxStream, Stream};

use super::channels::Queue;
use super::interpreter::Program;
use super::shared::{Shared, Subject, Wakes};
use crate::connection::{Arg, Call, Connection, ConnectionError, Notice, Reply, Topology};
use crate::mutex::lock;
use crate::runtime::yield_once;

/// One client's connection to a [`Server`](super::Server). It is never interrupted, so its subscriptions have no gaps.
///
/// The first poll of a call executes it, and the second returns the answer. A loop around calls therefore lets other
/// tasks run, and a future can be dropped between execution and answer, as on a network.
pub struct EmbeddedConnection {
    server: Arc<Shared>,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    closed: bool,
    subscriptions: Vec<(Subject, String, Arc<Queue>)>,
}

impl EmbeddedConnection {
    pub(super) fn new(server: Arc<Shared>) -> Self {
        Self { server, open: Mutex::default() }
    }

    fn execute(&self, call: &Call<'_>) -> Result<Reply, ConnectionError> {
        let (answer, wakes) = self.execute_locked(call)?;
        drop(wakes);
        answer
    }

    fn execute_locked(&self, call: &Call<'_>) -> Result<(Result<Reply, ConnectionError>, Wakes), ConnectionError> {
        // Locked until the script is done, so that nothing is executed after the connection is closed.
        let open = lock(&self.open);
        if open.closed {
            return Err(ConnectionError::Closed);
        }
        let numbers: Vec<String> = call.args.iter().map(decimal).collect();
        let args = call.args.iter().zip(&numbers).map(|(arg, number)| match arg {
            Arg::Text(text) => text.as_bytes(),
            Arg::Number(_) => number.as_bytes(),
        });
        Ok(self.server.run(Program::Script(call.script), call.keys.iter().map(|key| key.as_bytes()), args))
    }

    fn listen(&self, subject: Subject, name: &str) -> Result<Subscription, ConnectionError> {
        // Dropped after the connection is unlocked: wakers are foreign code.
        let (_wakes, _dead);
        let mut open = lock(&self.open);
        if open.closed {
            return Err(ConnectionError::Closed);
        }
        let (queue, name) = (Arc::new(Queue::default()), name.to_owned());
        ((), _wakes) = self.server.with_wakes(|_, database| match subject {
            Subject::Channel => database.channels.subscribe(name.as_bytes(), &queue),
            Subject::Key => database.watches.watch(name.as_bytes(), &queue),
        });
        // If this list holds the only reference, the reader has dropped its subscription.
        let is_dead = |(_, _, queue): &mut (Subject, String, Arc<Queue>)| Arc::strong_count(queue) == 1;
        _dead = open.subscriptions.extract_if(.., is_dead).collect::<Vec<_>>();
        open.subscriptions.push((subject, name.clone(), queue.clone()));
        Ok(Subscription { server: self.server.clone(), subject, name, queue })
    }
}

fn decimal(arg: &Arg<'_>) -> String {
    match arg {
        Arg::Text(_) => String::new(),
        Arg::Number(number) => number.to_string(),
    }
}

#[async_trait]
impl Connection for EmbeddedConnection {
    fn inner(&self) -> Option<&dyn Connection> {
        None
    }

    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
        let answer = self.execute(&call);
        yield_once().await;
        answer
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        let answers = calls.iter().map(|call| self.execute(call)).collect();
        yield_once().await;
        answers
    }

    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        let subscription = self.listen(Subject::Channel, channel)?;
        yield_once().await;
        Ok(subscription.boxed())
    }

    async fn watch_key(&self, key: &str, _: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        let subscription = self.listen(Subject::Key, key)?;
        yield_once().await;
        Ok(subscription.boxed())
    }

    fn topology(&self) -> Topology {
        Topology::single_server()
    }

    /// No call needs a runtime.
    fn without_runtime(&self, _: Duration) -> Option<Box<dyn Connection>> {
        Some(Box::new(Self::new(self.server.clone())))
    }

    fn close(&self) {
        let subscriptions = {
            let mut open = lock(&self.open);
            open.closed = true;
            std::mem::take(&mut open.subscriptions)
        };
        for (subject, name, queue) in subscriptions {
            self.server.end(subject, &name, &queue);
            queue.end();
        }
    }
}

impl Drop for EmbeddedConnection {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for EmbeddedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedConnection").field("closed", &lock(&self.open).closed).finish_non_exhaustive()
    }
}

/// Dropping it unsubscribes.
struct Subscription {
    server: Arc<Shared>,
    subject: Subject,
    name: String,
    queue: Arc<Queue>,
}

impl Stream for Subscription {
    type Item = Notice;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Notice>> {
        self.queue.poll(context).map(|message| message.map(Notice::Message))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.server.end(self.subject, &self.name, &self.queue);
    }
}
