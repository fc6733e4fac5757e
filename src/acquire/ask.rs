//! The requests of an acquisition: sent until one is answered, or a message has told what became of them.

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use crate::acquire::request::Request;
use crate::acquire::wait::{Asked, Waiter};
use crate::driver::retry::Retry;
use crate::engine::attempt::Outcome;
use crate::engine::lease::Hold;
use crate::error::{ErrorKind, Result};
use crate::mutant::{self, Mutant};
use crate::protocol::dispatch::AcquireArgs;
use crate::protocol::reply::{Acquired, Requeued};
use crate::protocol::ticket::Ticket;
use crate::protocol::token::Token;

/// What the server said about an attempt.
pub(super) enum Answer {
    Granted {
        token: Token,
        counted_from: Instant,
    },
    Queued,
    /// Queued; the ticket belongs to the cohort now.
    LeftToCohort,
    Busy,
    /// The answers were lost, and a message or a heartbeat came first.
    Decided(Outcome),
}

/// Sends requests about the attempt until there is an answer.
pub(super) async fn ask(request: &Request, waiter: &mut Waiter<'_>, retry: &mut Retry<'_>) -> Result<Answer> {
    retry.start();
    loop {
        let sent = waiter.next_request().ok_or_else(|| request.error(ErrorKind::Closed))?;
        let answer = match waiter.attempt.state.before.clone() {
            Some(before) => requeue(request, waiter, retry, &before, sent).await?,
            None => acquire(request, waiter, retry, sent).await?,
        };
        if let Some(answer) = answer {
            return Ok(answer);
        }
    }
}

/// Releases the hold before and queues up, in one request. `None`: the next request is due.
async fn requeue(
    request: &Request,
    waiter: &mut Waiter<'_>,
    retry: &mut Retry<'_>,
    before: &Hold,
    sent: Instant,
) -> Result<Option<Answer>> {
    let (context, keys) = (waiter.context, &request.keys);
    let ticket = ticket(request, waiter);
    let unread = context.engine.unread_reply(keys, sent);
    let requeued = context.scripts().requeue(keys, before.id, (ticket, ticket.ttl())).await;
    drop(unread);
    match requeued {
        Ok(Requeued::Granted { token, more: call_again, told: messages, now }) => {
            context.observe(now);
            context.deliver(messages);
            if call_again {
                context.reply_lost(keys);
            }
            Ok(Some(Answer::Granted { token, counted_from: sent }))
        }
        Ok(Requeued::Queued { more: call_again, told: messages, now }) => {
            context.observe(now);
            waiter.attempt.state.before = None;
            let left_to_cohort = waiter.set_queued(sent, None, call_again);
            context.deliver(messages);
            Ok(Some(if left_to_cohort { Answer::LeftToCohort } else { Answer::Queued }))
        }
        // The hold was lost; or an earlier copy of the request was executed, and the ticket waits or was granted. The next
        // request, with the same attempt id, finds out.
        Ok(Requeued::NotHeld { now }) => {
            context.observe(now);
            waiter.attempt.state.before = None;
            context.reply_lost(keys);
            Ok(None)
        }
        Err(failure) => {
            if failure.may_be_done() {
                context.reply_lost(keys);
            }
            Ok(match waiter.pause::<()>(retry, failure).await? {
                Asked::Decided(outcome) => Some(Answer::Decided(outcome)),
                Asked::Answered(()) | Asked::Failed => None,
            })
        }
    }
}

/// `None`: the next request is due.
async fn acquire(
    request: &Request,
    waiter: &mut Waiter<'_>,
    retry: &mut Retry<'_>,
    sent: Instant,
) -> Result<Option<Answer>> {
    let context: &Arc<_> = waiter.context;
    let ticket = ticket(request, waiter);
    let args = AcquireArgs {
        ticket,
        ticket_ttl: ticket.ttl(),
        wait: request.wait,
        max_waiters: request.max_waiters,
        not_after: waiter.not_after(sent),
    };
    let call = pin!(context.scripts().acquire(&request.keys, args));
    let acquired = match waiter.ask(retry, call).await? {
        Asked::Answered(acquired) => acquired,
        Asked::Decided(outcome) => return Ok(Some(Answer::Decided(outcome))),
        Asked::Failed => return Ok(None),
    };
    if matches!(acquired, Acquired::Stale { .. }) && mutant::on(Mutant::StaleNotLearned) {
        return Ok(None);
    }
    let (Acquired::Granted { now, .. }
    | Acquired::Queued { now, .. }
    | Acquired::Busy { now, .. }
    | Acquired::Full { now }
    | Acquired::Stale { now }
    | Acquired::Over { now, .. }) = acquired;
    context.observe(now);
    match acquired {
        Acquired::Granted { token, .. } => {
            let mut counted_from = sent;
            if mutant::on(Mutant::LeaseFromReply) {
                counted_from = context.now();
            }
            Ok(Some(Answer::Granted { token, counted_from }))
        }
        Acquired::Queued { holder_left, more: call_again, .. } => {
            let left_to_cohort = waiter.set_queued(sent, holder_left, call_again);
            Ok(Some(if left_to_cohort { Answer::LeftToCohort } else { Answer::Queued }))
        }
        Acquired::Busy { more: false, .. } => Ok(Some(Answer::Busy)),
        // Expired tickets are left to remove; or the request took longer than `not_after` allowed, and the answer has corrected
        // the estimate of the server's clock.
        Acquired::Busy { more: true, .. } | Acquired::Stale { .. } => Ok(None),
        Acquired::Over { limit, .. } => {
            waiter.attempt.forget();
            let reason = format!("{} permits of {limit}", request.amount);
            Err(request.error_because(ErrorKind::OverLimit, reason))
        }
        Acquired::Full { .. } => {
            waiter.attempt.forget();
            Err(request.error(ErrorKind::QueueFull))
        }
    }
}

fn ticket(request: &Request, waiter: &Waiter<'_>) -> Ticket {
    request.keys.kind.ticket(waiter.attempt.id(), request.lease, waiter.attempt.state.amount)
}
