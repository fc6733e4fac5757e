//! The one task of a client: it renews leases, sends heartbeats of tickets, signals losses and cleans up.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use futures::{FutureExt, future};

use crate::backoff::Backoff;
use crate::connection::{Connection, ConnectionError};
use crate::driver::retry::PAUSES;
use crate::driver::server_clock::ServerClock;
use crate::engine::Engine;
use crate::engine::cleanups::Cleanup;
use crate::engine::work::{Heartbeat, Work};
use crate::protocol::dispatch::{Failure, Scripts, TicketArgs};
use crate::runtime::Executor;

mod goodbye;
mod renewals;

use renewals::{Renewals, Unconfirmed};

/// What the task works with. It does not keep the client alive, so the drop of the last handle can end it.
#[derive(Clone, Debug)]
pub(crate) struct Watchdog {
    pub(crate) engine: Arc<Engine>,
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) connection: Arc<dyn Connection>,
    pub(crate) clock: Arc<ServerClock>,
    pub(crate) inbox_prefix: Arc<str>,
    pub(crate) retry_timeout: Duration,
    pub(crate) command_timeout: Duration,
    pub(crate) shutdown_timeout: Duration,
}

impl Watchdog {
    /// Runs until [`Engine::end`]. If the runtime drops the task before that, every hold is reported lost, and released without
    /// the runtime.
    pub(crate) fn run(self) -> impl Future<Output = ()> + Send + 'static {
        // Created here, because the runtime may drop the task before the first poll.
        let dies = Dies(self);
        async move { dies.0.watch().await }
    }

    async fn watch(&self) {
        let unconfirmed = Unconfirmed::default();
        let mut calls = FuturesUnordered::<BoxFuture<'_, ()>>::new();
        loop {
            let mut listener = pin!(self.engine.listen());
            let work = self.engine.work(self.executor.now());
            if work.ended {
                return;
            }
            let next = work.next;
            self.start(work, &unconfirmed, &mut calls);

            let mut timer = next.map(|at| self.executor.sleep(at.saturating_duration_since(self.executor.now())));
            future::poll_fn(|context| {
                // The outcome of a finished call may change what is due next.
                let mut woken = false;
                while let Poll::Ready(Some(())) = calls.poll_next_unpin(context) {
                    woken = true;
                }
                let timer = timer.as_mut().map_or(Poll::Pending, |timer| timer.as_mut().poll(context));
                woken |= timer.is_ready() | listener.as_mut().poll(context).is_ready();
                if woken { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }
    }

    fn start<'a>(&'a self, work: Work, unconfirmed: &'a Unconfirmed, calls: &mut FuturesUnordered<BoxFuture<'a, ()>>) {
        let renewals = self.renewals();
        for ((.., replicas), holds) in renewals.grouped(work.renew) {
            calls.push(renewals.renew(replicas, holds).boxed());
        }
        for hold in work.confirm {
            let group = renewals.group(&hold);
            if unconfirmed.push(group, hold) {
                calls.push(renewals.confirm(group, unconfirmed).boxed());
            }
        }
        for heartbeat in work.heartbeat {
            calls.push(self.heartbeat(heartbeat).boxed());
        }
        for (n, cleanup) in work.cleanups {
            calls.push(self.clean_up(n, cleanup).boxed());
        }
    }

    async fn heartbeat(&self, Heartbeat { keys, tickets }: Heartbeat) {
        let args: Vec<TicketArgs> = tickets.iter().map(|(_, ticket)| (*ticket, ticket.ttl())).collect();
        let sent = self.executor.now();
        let outcome = self.scripts().heartbeat(&keys, &args).await;
        let ids: Vec<u64> = tickets.iter().map(|(id, _)| *id).collect();
        let now = self.executor.now();
        match outcome {
            Ok(reply) => {
                self.clock.observe(now, reply.now);
                self.engine.heartbeat_answered(&keys, &ids, sent, now, reply);
            }
            Err(failure) => {
                let retry_timeout = if failure.kind().is_retryable() { self.retry_timeout } else { Duration::ZERO };
                self.engine.heartbeat_failed(&keys, &ids, sent, now, &failure, retry_timeout);
            }
        }
    }

    async fn clean_up(&self, n: u64, cleanup: Cleanup) {
        self.cancel(cleanup).await;
        // Not reached if the future is dropped: the clean-up is not done then.
        self.engine.cleanup_done(n);
    }

    /// Repeats the call until the server has answered, or the ticket or hold has expired.
    async fn cancel(&self, cleanup: Cleanup) {
        let mut backoff = Backoff::new(PAUSES, self.engine.jitter_seed());
        while self.executor.now() < cleanup.until {
            match self.scripts().cancel(&cleanup.keys, cleanup.ticket, cleanup.from_tail).await {
                Ok(cancelled) => {
                    self.clock.observe(self.executor.now(), cancelled.now);
                    if !cancelled.more {
                        return;
                    }
                }
                Err(Failure::Connection(ConnectionError::Closed)) => return,
                Err(failure) if !failure.kind().is_retryable() => return,
                Err(_) => self.executor.sleep(backoff.pause()).await,
            }
        }
    }

    fn renewals(&self) -> Renewals<'_> {
        let Self { engine, executor, clock, command_timeout, .. } = self;
        Renewals { engine, executor: &**executor, clock, scripts: self.scripts(), command_timeout: *command_timeout }
    }

    fn scripts(&self) -> Scripts<'_> {
        Scripts { connection: &*self.connection, inbox_prefix: &self.inbox_prefix }
    }
}

struct Dies(Watchdog);

impl Drop for Dies {
    fn drop(&mut self) {
        let Watchdog { engine, executor, connection, inbox_prefix, shutdown_timeout, .. } = &self.0;
        let left = engine.die(executor.now());
        goodbye::say(&**executor, &**connection, inbox_prefix, *shutdown_timeout, left);
    }
}

#[cfg(test)]
mod tests;
