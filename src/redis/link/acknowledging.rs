//! The connections on which grants and renewals wait for replicas.
//!
//! `WAIT` holds up every command behind it, so these connections carry nothing else. Each number of replicas has its
//! own connection, made when it is first needed, so that holds with different numbers do not hold each other up. All of
//! them belong to one connection for commands. When that connection is made anew, it may lead to another server, so the
//! others are made anew too. The task of a connection ends when no call has needed the connection for a while.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::{Either, select};

use super::Link;
use super::beside::beside;
use super::calls::{self, Waiting};
use super::limit::Limit;
use super::supervisor;
use crate::connection::{Acknowledged, Call, ConnectionError};
use crate::mutex::lock;
use crate::tuning::REPLICA_LINK_IDLE;

/// The connections, by their number of replicas. Dropping one closes it.
#[derive(Default)]
pub(in crate::redis) struct Acknowledging(Arc<Links>);

type Links = Mutex<BTreeMap<u32, ReplicaLink>>;

struct ReplicaLink {
    link: Arc<Link>,
    /// The generation of the connection for commands to which this connection belongs.
    commands: u64,
    /// The number of batches of calls that are under way.
    calls: usize,
    /// When the last of them began or ended.
    used: Instant,
}

/// Marks the connection as needed while it exists.
struct Use<'a> {
    links: &'a Links,
    link: Arc<Link>,
}

impl Drop for Use<'_> {
    fn drop(&mut self) {
        let now = self.link.executor.now();
        if let Some(kept) = lock(self.links).values_mut().find(|kept| Arc::ptr_eq(&kept.link, &self.link)) {
            kept.calls -= 1;
            kept.used = now;
        }
    }
}

impl Acknowledging {
    /// Runs the calls on the server of the connection for commands, and waits for replicas.
    pub(in crate::redis) async fn run(
        &self,
        commands: &Link,
        calls: &[Call<'_>],
        waiting: Waiting,
    ) -> Vec<Result<Acknowledged, ConnectionError>> {
        let failed = |error: ConnectionError| calls.iter().map(|_| Err(error.clone())).collect();
        let started = commands.executor.now();
        let generation = match commands.within(waiting.within, commands.ready()).await {
            Some(Ok(up)) => up.generation,
            Some(Err(error)) => return failed(error),
            None => return failed(commands.late(Limit { started, limit: waiting.within }, None)),
        };
        let elapsed = commands.executor.now().saturating_duration_since(started);
        let waiting = Waiting { within: waiting.within.saturating_sub(elapsed), ..waiting };
        let needed = self.link(commands, generation, waiting.replicas);
        let link = &needed.link;
        let answers =
            match select(pin!(calls::run_acknowledged(link, calls, waiting)), pin!(commands.gone(generation))).await {
                Either::Left((answers, _)) => Some(answers),
                Either::Right(_) => None,
            };
        if commands.is_closed() {
            // The connection for commands may have been closed before the link was added.
            link.close();
            return failed(ConnectionError::Closed);
        }
        // The answers may come from a server that is no longer in use.
        let unknown = || ConnectionError::Unknown("the connection for commands is another one now".to_owned());
        answers.filter(|_| commands.is_current(generation)).unwrap_or_else(|| failed(unknown()))
    }

    /// The connection for calls that wait for this number of replicas. It is dialled after the connection for commands
    /// of this generation.
    fn link(&self, commands: &Link, generation: u64, replicas: u32) -> Use<'_> {
        let now = commands.executor.now();
        let mut links = lock(&self.0);
        let mut old = Vec::new();
        links.retain(|_, kept| {
            let is_current = kept.commands >= generation;
            if !is_current {
                old.push(Arc::clone(&kept.link));
            }
            is_current
        });
        // A link for calls that wait for no replica can serve another number.
        let (mut kept, is_new) = match links.remove(&replicas).or_else(|| links.remove(&0)) {
            Some(kept) => (kept, false),
            None => {
                let link = Arc::new(commands.sibling());
                (ReplicaLink { link, commands: generation, calls: 0, used: now }, true)
            }
        };
        kept.calls += 1;
        kept.used = now;
        let link = Arc::clone(&kept.link);
        links.insert(replicas, kept);
        drop(links);
        old.iter().for_each(|old| old.close());
        if is_new {
            let (links, of_task) = (Arc::downgrade(&self.0), Arc::clone(&link));
            link.executor.spawn(Box::pin(async move {
                let idle = until_idle(&links, &of_task).boxed();
                beside(supervisor::supervise_again(Arc::clone(&of_task), |_| {}), [idle]).await;
            }));
        }
        Use { links: &self.0, link }
    }

    pub(in crate::redis) fn close(&self) {
        let links = std::mem::take(&mut *lock(&self.0));
        links.into_values().for_each(|kept| kept.link.close());
    }
}

/// Removes the connection when no call has needed it for a while, and returns. Each connection sets a timer for this,
/// instead of each call.
async fn until_idle(links: &Weak<Links>, link: &Arc<Link>) {
    let mut pause = REPLICA_LINK_IDLE;
    loop {
        let due = link.executor.now() + pause;
        link.executor.sleep(pause).await;
        let now = link.executor.now();
        // A sleep ends early only when the runtime is shut down.
        let Some(links) = links.upgrade().filter(|_| now >= due) else { return };
        let mut links = lock(&links);
        let Some((k, kept)) = links.iter().find(|(_, kept)| Arc::ptr_eq(&kept.link, link)) else { return };
        let idle = if kept.calls == 0 { now.saturating_duration_since(kept.used) } else { Duration::ZERO };
        if idle >= REPLICA_LINK_IDLE {
            let k = *k;
            links.remove(&k);
            return;
        }
        pause = REPLICA_LINK_IDLE - idle;
    }
}

impl Drop for Acknowledging {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests;
