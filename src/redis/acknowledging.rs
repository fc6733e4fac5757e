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

/// By number of replicas. Dropping it closes them.
#[derive(Default)]
pub(super) struct Acknowledging(Mutex<BTreeMap<u32, Link>>);

struct Link {
    shared: Arc<Shared>,
    /// The generation of the connection for commands that this one belongs to.
    commands: u64,
}

impl Acknowledging {
    /// Runs the calls at the server of the connection for commands, and waits for replicas.
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
            // It may have been closed before the link was there.
            link.close();
            return failed(ConnectionError::Closed);
        }
        // The answers may be those of a server that calls are not sent to any more.
        let unknown = || ConnectionError::Unknown("the connection for commands is another one now".to_owned());
        answers.filter(|_| commands.is_current(generation)).unwrap_or_else(|| failed(unknown()))
    }

    /// The connection that waits for so many replicas. It is dialled after the connection for commands of this generation was made.
    fn link(&self, commands: &Shared, generation: u64, replicas: u32) -> Arc<Shared> {
        let mut links = lock(&self.0);
        // What has waited for no replica holds nothing up, and is free for others.
        let old = links.remove(&replicas).or_else(|| links.remove(&0));
        if let Some(link) = old.as_ref().filter(|link| link.commands >= generation) {
            let shared = Arc::clone(&link.shared);
            links.extend(old.map(|link| (replicas, link)));
            return shared;
        }
        let shared = Arc::new(commands.sibling());
        links.insert(replicas, Link { shared: Arc::clone(&shared), commands: generation });
        drop(links);
        old.into_iter().for_each(|old| old.shared.close());
        shared.executor.spawn(Box::pin(supervisor::supervise_sibling(Arc::clone(&shared))));
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
