//! An attempt's requests: sent until one is answered, or what became of it is known otherwise.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures::future::{Either, select};

use crate::acquire::attempt::Attempt;
use crate::context::Retry;
use crate::engine::{Outcome, Queued};
use crate::error::{ErrorKind, Result};
use crate::mutant::{self, Mutant};
use crate::protocol::dispatch::{AcquireArgs, Failure};
use crate::protocol::reply::{Acquired, Requeued};
use crate::protocol::ticket::Ticket;
use crate::protocol::token::Token;

/// What the server said about a request for the lock.
pub(super) enum Answer {
    Granted {
        token: Token,
        counted_from: Instant,
    },
    Queued,
    /// For whoever in the cohort is first by then.
    QueuedInCohort,
    Busy,
    Full,
    Over {
        limit: u32,
    },
    /// The answers were lost, and a message or a heartbeat came first.
    Decided(Outcome),
}

impl Attempt<'_> {
    /// Sends the request until there is an answer, or no sense in sending it again.
    pub(super) async fn ask(&mut self, retry: &mut Retry<'_>) -> Result<Answer> {
        retry.start();
        loop {
            // Closing has cancelled this attempt id: sent after that, the request would acquire for nobody.
            if self.context.engine.is_closed() {
                return Err(self.request.error(ErrorKind::Closed));
            }
            let sent = self.context.now();
            self.asked += 1;
            if let Some(before) = &self.before {
                let ticket = self.ticket();
                let unread = self.context.engine.unread(&self.request.keys, sent);
                let requeued =
                    self.context.scripts().requeue(&self.request.keys, before.id, (ticket, ticket.ttl())).await;
                drop(unread);
                match requeued {
                    Ok(Requeued::Granted { token, more, told, now }) => {
                        self.context.observe(now);
                        self.context.deliver(told);
                        if more {
                            self.context.unheard(&self.request.keys);
                        }
                        return Ok(Answer::Granted { token, counted_from: sent });
                    }
                    Ok(Requeued::Queued { more, told, now }) => {
                        self.context.observe(now);
                        self.before = None;
                        let queued = self.queued(sent, None, more);
                        self.context.deliver(told);
                        return Ok(queued);
                    }
                    // It was lost; or an earlier copy of the request has been executed, and the ticket waits or was
                    // granted. The same attempt id finds out.
                    Ok(Requeued::NotHeld { now }) => {
                        self.context.observe(now);
                        self.before = None;
                        self.context.unheard(&self.request.keys);
                    }
                    Err(failure) => {
                        if failure.may_be_done() {
                            self.context.unheard(&self.request.keys);
                        }
                        if let Some(outcome) = self.again_after(retry, failure).await? {
                            return Ok(Answer::Decided(outcome));
                        }
                    }
                }
                continue;
            }
            let ticket = self.ticket();
            let args = AcquireArgs {
                ticket,
                ticket_ttl: ticket.ttl(),
                wait: self.request.wait,
                max_waiters: self.request.max_waiters,
                not_after: self.not_after(sent),
            };
            let answer = {
                let scripts = self.context.scripts();
                let answered = pin!(scripts.acquire(&self.request.keys, args));
                // A message may overtake the answer, or make up for it. If this is the second copy, it may be about the
                // first one, and only the answer tells.
                match select(answered, self.outcome(self.asked == 1)).await {
                    Either::Left((answer, _)) => answer,
                    Either::Right((outcome, _)) => return Ok(Answer::Decided(outcome)),
                }
            };
            match answer {
                Ok(Acquired::Granted { token, now }) => {
                    self.context.observe(now);
                    let counted_from = if mutant::on(Mutant::LeaseFromReply) { self.context.now() } else { sent };
                    return Ok(Answer::Granted { token, counted_from });
                }
                Ok(Acquired::Queued { holder_left, length: _, more, now }) => {
                    self.context.observe(now);
                    return Ok(self.queued(sent, holder_left, more));
                }
                Ok(Acquired::Busy { more: false, now }) => {
                    self.context.observe(now);
                    return Ok(Answer::Busy);
                }
                // Expired tickets are left to drop; or the request took longer than the server's clock allowed, and
                // its answer has set our idea of that clock right.
                Ok(Acquired::Stale { .. }) if mutant::on(Mutant::StaleNotLearned) => {}
                Ok(Acquired::Busy { more: true, now } | Acquired::Stale { now }) => self.context.observe(now),
                Ok(Acquired::Over { limit, now }) => {
                    self.context.observe(now);
                    return Ok(Answer::Over { limit });
                }
                Ok(Acquired::Full { now }) => {
                    self.context.observe(now);
                    return Ok(Answer::Full);
                }
                Err(failure) => {
                    if let Some(outcome) = self.again_after(retry, failure).await? {
                        return Ok(Answer::Decided(outcome));
                    }
                }
            }
        }
    }

    fn ticket(&self) -> Ticket {
        self.request.keys.kind.ticket(self.pending.id, self.request.lease, self.amount)
    }

    fn queued(&self, sent: Instant, holder_left: Option<Duration>, more: bool) -> Answer {
        let queued = Queued { sent, asked: self.asked, holder_left, more };
        match self.context.engine.queued(self.pending.id, queued, self.context.now()) {
            true => Answer::QueuedInCohort,
            false => Answer::Queued,
        }
    }

    /// Pauses before the next try, unless it is known before what became of the earlier ones. If it gives up, so do those
    /// in its cohort who wait for as long: a new attempt id is for those who do not.
    async fn again_after(&mut self, retry: &mut Retry<'_>, failure: Failure) -> Result<Option<Outcome>> {
        let pause = pin!(retry.again_after(failure));
        let again = match select(pause, self.outcome(true)).await {
            Either::Left((again, _)) => again,
            Either::Right((outcome, _)) => return Ok(Some(outcome)),
        };
        self.pending.alone |= again.is_err();
        again.map(|()| None)
    }

    /// What a message or a heartbeat says has become of it, unless nobody listens.
    pub(super) fn outcome(&self, listens: bool) -> impl Future<Output = Outcome> + Unpin {
        let listens = listens && !mutant::on(Mutant::DeafWhileAsking);
        poll_fn(move |context| match listens {
            true => self.context.engine.poll_outcome(self.pending.id, context),
            false => Poll::Pending,
        })
    }

    /// When the server must not execute the request any more, because nobody will be there for its answer.
    fn not_after(&self, sent: Instant) -> u64 {
        if mutant::on(Mutant::NoNotAfter) {
            return 0;
        }
        self.context.not_after(sent, self.until.map(|until| until.saturating_duration_since(sent)))
    }
}
