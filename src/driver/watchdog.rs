//! The one task of a client: it renews leases, sends heartbeats of tickets, signals losses and cleans up.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use futures::{FutureExt, future};

use crate::connection::Connection;
use crate::driver::label::Labelled;
use crate::driver::retry::Asker;
use crate::driver::server_clock::ServerClock;
use crate::engine::Engine;
use crate::engine::ahead::Ask;
use crate::engine::cleanup::Cleanup;
use crate::engine::work::{Heartbeat, Work};
use crate::error::ErrorKind;
use crate::jitter::Jitter;
use crate::observe::meter;
use crate::protocol::dispatch::{Failure, Scripts, TicketArgs};
use crate::protocol::key::Keys;
use crate::protocol::reply::AskedAhead;
use crate::runtime::{Executor, yield_once};
use crate::tuning::REQUEST;

pub(crate) mod goodbye;
mod renewals;
mod unconfirmed;

use renewals::Renewals;
use unconfirmed::Unconfirmed;

/// How often the watchdog looks for work without being pending in between.
const MOST_TURNS: u32 = 64;

/// The state of the watchdog. It does not keep the client alive, so that dropping the last handle can end the watchdog.
#[derive(Clone, Debug)]
pub(crate) struct Watchdog {
    pub(crate) engine: Arc<Engine>,
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) connection: Arc<dyn Connection>,
    pub(crate) clock: Arc<ServerClock>,
    pub(crate) inbox_prefix: Arc<str>,
    pub(crate) label: Option<Arc<Labelled>>,
    pub(crate) retry_timeout: Duration,
    pub(crate) command_timeout: Duration,
    pub(crate) shutdown_timeout: Duration,
}

impl Watchdog {
    /// Runs until [`Engine::end`]. If the runtime drops the task before that, every hold is reported lost, and released
    /// without the runtime.
    pub(crate) fn run(self) -> impl Future<Output = ()> + Send + 'static {
        // Created here, because the runtime may drop the task before the first poll.
        let mut dies = ReleaseOnDrop { watchdog: self, has_ended: false };
        async move {
            dies.watchdog.watch().await;
            dies.set_ended();
        }
    }

    async fn watch(&self) {
        let unconfirmed = Unconfirmed::default();
        let mut calls = FuturesUnordered::<BoxFuture<'_, ()>>::new();
        let label = self.label.as_ref();
        let mut label = label.map(|label| label.keep(&self.engine, &self.executor, self.scripts()).boxed());
        let mut turns = 0;
        let mut was_capped = false;
        loop {
            // A runtime that is shut down drops a task only while the task is pending. Its sleeps end early, so this
            // task might never be pending: clean-ups that fail at once and their pauses would always be ready by turns.
            turns += 1;
            if turns > MOST_TURNS {
                turns = 0;
                yield_once().await;
            }
            let mut listener = pin!(self.engine.listen());
            let work = self.engine.work(self.executor.now());
            if work.ended {
                if let Some(label) = label {
                    label.await;
                }
                return;
            }
            if work.is_capped && !was_capped {
                meter::storms_capped(1);
            }
            was_capped = work.is_capped;
            let next = work.next;
            self.start(work, &unconfirmed, &mut calls);

            let mut timer = next.map(|at| self.executor.sleep(at.saturating_duration_since(self.executor.now())));
            future::poll_fn(|context| {
                // The outcome of a finished call may change what is due next.
                let mut woken = false;
                while let Poll::Ready(Some(())) = calls.poll_next_unpin(context) {
                    woken = true;
                }
                if label.as_mut().is_some_and(|label| label.as_mut().poll(context).is_ready()) {
                    label = None;
                }
                let timer = timer.as_mut().map_or(Poll::Pending, |timer| timer.as_mut().poll(context));
                woken |= timer.is_ready() | listener.as_mut().poll(context).is_ready();
                if woken {
                    return Poll::Ready(());
                }
                turns = 0;
                Poll::Pending
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
        for ask in work.ahead {
            calls.push(self.ask_ahead(ask).boxed());
        }
        for heartbeat in work.heartbeat {
            calls.push(self.heartbeat(heartbeat).boxed());
        }
        for (n, cleanup) in work.cleanups {
            calls.push(self.clean_up(n, cleanup).boxed());
        }
    }

    /// Asks about tickets. The wait ends when the first of them gives up.
    async fn heartbeat(&self, Heartbeat { keys, tickets, last }: Heartbeat) {
        let args: Vec<TicketArgs> = tickets.iter().map(|(_, ticket)| (*ticket, ticket.ttl())).collect();
        let sent = self.executor.now();
        let scripts = self.scripts();
        let asked = scripts.heartbeat(&keys, &args);
        let (left, last) = last.map_or((self.retry_timeout, None), |(left, last)| (left, Some(last)));
        let outcome = match last {
            // Not sent, because no time is left for an answer.
            Some(last) if left.is_zero() => Err(last),
            _ if left >= self.command_timeout || left.is_zero() => asked.await,
            _ => self.asker().within(left, &keys, asked).await,
        };
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

    /// Sent only once. If no answer comes, the hold continues as if nothing had been asked.
    async fn ask_ahead(&self, ask: Ask) {
        let sent = self.executor.now();
        let args = ask.args(self.clock.not_after(sent, self.command_timeout));
        let answer = self.scripts().ask_ahead(&ask.keys, args).await.ok();
        let now = self.executor.now();
        if let Some(
            AskedAhead::Granted { now: server, .. }
            | AskedAhead::Queued { now: server }
            | AskedAhead::Wanted { now: server }
            | AskedAhead::NotHeld { now: server }
            | AskedAhead::Stale { now: server },
        ) = answer
        {
            self.clock.observe(now, server);
        }
        self.engine.ahead_answered(&ask, answer, sent, now);
    }

    /// Cleans up once. Without an answer, the clean-up pauses and goes behind those that wait. It is repeated until the
    /// server has answered, the call fails for a reason that is not worth a retry, or the answer is of no use any more.
    async fn clean_up(&self, n: u64, cleanup: Cleanup) {
        // If the future is dropped, the engine is not told, because the clean-up is not done.
        if let Ok(was_held) = self.cancel(&cleanup).await
            && self.end_again(&cleanup).await.is_ok()
        {
            return self.engine.cleanup_done(n, was_held);
        }
        let pause = REQUEST.after(cleanup.failures, &mut Jitter::new(self.engine.jitter_seed()));
        self.executor.sleep(pause).await;
        self.engine.cleanup_again(n, self.executor.now());
    }

    /// Removes the ticket or hold from Redis, and returns whether a hold was there. After an error it may still be
    /// there, and the call is worth repeating.
    async fn cancel(&self, cleanup: &Cleanup) -> Result<bool, Failure> {
        let mut was_held = false;
        while !cleanup.needs_no_call(self.executor.now(), self.engine.is_closed()) {
            let Cleanup { keys, ticket, from_tail, behind, .. } = cleanup;
            let cancelled = match *behind {
                0 => self.scripts().cancel(keys, *ticket, *from_tail).await,
                // A cancel over another connection might overtake the request that it cancels.
                replicas => {
                    let within = self.command_timeout;
                    self.scripts().cancel_acknowledged(keys, *ticket, *from_tail, replicas, within).await
                }
            };
            match cancelled {
                Ok(cancelled) => {
                    self.clock.observe(self.executor.now(), cancelled.now);
                    was_held |= cancelled.was_held;
                    if !cancelled.call_again {
                        break;
                    }
                }
                // The runtime closes the connection when it drops the connection's task, which may be before it drops
                // this one. The clean-up is then left for the good-bye.
                Err(failure) if failure.kind() == ErrorKind::Closed || self.may_pass(&failure, keys) => {
                    return Err(failure);
                }
                Err(_) => break,
            }
        }
        Ok(was_held)
    }

    /// After a repeated clean-up, asks who holds the name. After a failover, the new server may have another hold that
    /// this client has ended before: it has not heard of the end, or it had kept the ticket and has granted it. The
    /// engine ends that hold again. Returns only errors that may pass.
    async fn end_again(&self, cleanup: &Cleanup) -> Result<(), Failure> {
        if !cleanup.is_repeated || !cleanup.keys.kind.has_holds() || self.engine.is_closed() {
            return Ok(());
        }
        match self.scripts().holders(&cleanup.keys, cleanup.ticket.id.client).await {
            Ok(held) => self.engine.end_again(held, self.executor.now()),
            // A client that was closed meanwhile has ended all that it must, and does not wait for this answer.
            Err(failure) if self.may_pass(&failure, &cleanup.keys) && !self.engine.is_closed() => return Err(failure),
            Err(_) => {}
        }
        Ok(())
    }

    /// Whether the call is worth repeating. A refused login passes when the credentials are right again, and a refused
    /// certificate when the server has another one.
    fn may_pass(&self, failure: &Failure, keys: &Keys) -> bool {
        failure.kind().is_retryable() || self.connection.why_down(keys.main()).is_some()
    }

    fn renewals(&self) -> Renewals<'_> {
        let Self { engine, executor, clock, command_timeout, .. } = self;
        Renewals { engine, executor: &**executor, clock, scripts: self.scripts(), command_timeout: *command_timeout }
    }

    fn asker(&self) -> Asker<'_> {
        let Self { executor, connection, engine, retry_timeout, command_timeout, .. } = self;
        let (retry_timeout, command_timeout) = (*retry_timeout, *command_timeout);
        Asker { executor, connection: &**connection, first: None, engine, retry_timeout, command_timeout }
    }

    fn scripts(&self) -> Scripts<'_> {
        Scripts { connection: &*self.connection, inbox_prefix: &self.inbox_prefix }
    }
}

struct ReleaseOnDrop {
    watchdog: Watchdog,
    /// Whether the client has ended. It has then done for its label what it could.
    has_ended: bool,
}

impl ReleaseOnDrop {
    /// The task calls this. If it assigned the field, it would capture and change a copy of it.
    fn set_ended(&mut self) {
        self.has_ended = true;
    }
}

impl Drop for ReleaseOnDrop {
    fn drop(&mut self) {
        let Watchdog { engine, executor, connection, inbox_prefix, label, shutdown_timeout, .. } = &self.watchdog;
        let left = engine.die(executor.now());
        let label = label.as_deref().filter(|_| !self.has_ended);
        goodbye::say(&**executor, &**connection, inbox_prefix, *shutdown_timeout, (left, label));
    }
}

#[cfg(test)]
mod tests;
