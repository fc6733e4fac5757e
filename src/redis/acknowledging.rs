//! The connections on which grants and renewals wait for replicas.
//!
//! `WAIT` holds up every command behind it, so these connections carry nothing else. Holds that need different numbers of replicas
//! do not hold each other up either: each number has a connection, made when it is first needed. All of them belong to one connection
//! for commands. When that one is made anew, its server may be another one, and they are made anew too.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};

use futures::future::{Either, select};

use super::calls::{self, Waiting};
use super::link::Shared;
use super::supervisor;
use crate::connection::{Acknowledged, Call, ConnectionError};
use crate::mutex::lock;

/// The connections, by their number of replicas. Dropping one closes it.
#[derive(Default)]
pub(super) struct Acknowledging(Mutex<BTreeMap<u32, Link>>);

struct Link {
    shared: Arc<Shared>,
    /// The generation of the connection for commands to which this connection belongs.
    commands: u64,
}

impl Acknowledging {
    /// Runs the calls on the server of the connection for commands, and waits for replicas.
    pub(super) async fn run(
        &self,
        commands: &Shared,
        calls: &[Call<'_>],
        waiting: Waiting,
    ) -> Vec<Result<Acknowledged, ConnectionError>> {
        let failed = |error: ConnectionError| calls.iter().map(|_| Err(error.clone())).collect();
        let started = commands.executor.now();
        let generation = match commands.within(waiting.within, commands.ready()).await {
            Some(Ok(up)) => up.generation,
            Some(Err(error)) => return failed(error),
            None => return failed(calls::late(commands, started, waiting.within, None)),
        };
        let elapsed = commands.executor.now().saturating_duration_since(started);
        let waiting = Waiting { within: waiting.within.saturating_sub(elapsed), ..waiting };
        let link = self.link(commands, generation, waiting.replicas);
        let answers =
            match select(pin!(calls::run_acknowledged(&link, calls, waiting)), pin!(commands.gone(generation))).await {
                Either::Left((answers, _)) => Some(answers),
                Either::Right(_) => None,
            };
        if commands.is_closed() {
            // The connection may have been closed before the link was added.
            link.close();
            return failed(ConnectionError::Closed);
        }
        // The answers may come from a server that is not in use any more.
        let unknown = || ConnectionError::Unknown("the connection for commands is another one now".to_owned());
        answers.filter(|_| commands.is_current(generation)).unwrap_or_else(|| failed(unknown()))
    }

    /// The connection for calls that wait for this number of replicas. It is dialled after the connection for commands of
    /// this generation.
    fn link(&self, commands: &Shared, generation: u64, replicas: u32) -> Arc<Shared> {
        let mut links = lock(&self.0);
        let mut old = Vec::new();
        links.retain(|_, link| {
            let is_current = link.commands >= generation;
            if !is_current {
                old.push(Arc::clone(&link.shared));
            }
            is_current
        });
        // A link on which calls have waited for no replica is free for another number.
        let (link, is_new) = match links.remove(&replicas).or_else(|| links.remove(&0)) {
            Some(link) => (link, false),
            None => (Link { shared: Arc::new(commands.sibling()), commands: generation }, true),
        };
        let shared = Arc::clone(&link.shared);
        links.insert(replicas, link);
        drop(links);
        old.iter().for_each(|old| old.close());
        if is_new {
            shared.executor.spawn(Box::pin(supervisor::supervise_sibling(Arc::clone(&shared))));
        }
        shared
    }

    pub(super) fn close(&self) {
        let links = std::mem::take(&mut *lock(&self.0));
        links.into_values().for_each(|link| link.shared.close());
    }
}

impl Drop for Acknowledging {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests;
