//! Sends the requests of an acquisition until one is answered, or until a message says what became of the attempt.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::acquire::request::Request;
use crate::acquire::wait::{Asked, Waiter};
use crate::context::Context;
use crate::driver::retry::Retry;
use crate::engine::attempt::Outcome;
use crate::engine::lease::{Hold, answer_within};
use crate::engine::replica_waits::WaitsOn;
use crate::error::{ErrorKind, Result};
use crate::mutant::{self, Mutant};
use crate::observe;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::change::Changed;
use crate::protocol::dispatch::{AcquireArgs, Failure};
use crate::protocol::permits::reply::Drained;
use crate::protocol::reply::{Acquired, Requeued};
use crate::protocol::ticket::Ticket;
use crate::protocol::token::Token;
use crate::tuning::REPLICAS_WAIT;

/// The server's answer about an attempt. `replicas`: the number of replicas that have acknowledged the grant. `left`:
/// what is left of the lease of the hold in the way.
pub(super) enum AcquireAnswer {
    Granted {
        token: Token,
        counted_from: Instant,
        replicas: u32,
    },
    Queued,
    /// Queued; the ticket belongs to the cohort now.
    LeftToCohort,
    Busy {
        is_retained: bool,
        left: Option<Duration>,
    },
    /// The cohort's former hold is released, and so many others were woken. The attempt has still to ask.
    Released(u64),
    /// The answers were lost, but a message or a heartbeat has said what became of the attempt.
    Decided(Outcome),
}

/// Sends requests about the attempt until there is an answer.
pub(super) async fn ask(request: &Request, waiter: &mut Waiter<'_>) -> Result<AcquireAnswer> {
    let context = waiter.context;
    let mut retry = match waiter.attempt.state.since {
        Some(since) => context.retry_from(request.operation, &request.keys, since).resumed(),
        None => {
            let now = context.now();
            waiter.attempt.state.since = Some(now);
            context.retry_from(request.operation, &request.keys, now)
        }
    };
    loop {
        let sent = waiter.next_request(&mut retry).await?.ok_or_else(|| request.error(ErrorKind::Closed))?;
        let answer = match waiter.attempt.state.before.clone() {
            Some(before) => requeue(request, waiter, &mut retry, &before, sent).await?,
            None => match request.resumes.as_deref() {
                Some(left) => resume(request, waiter, (&mut retry, sent), *left).await?,
                None if request.takes_all => drain(request, waiter, &mut retry, sent).await?,
                None => acquire(request, waiter, &mut retry, sent).await?,
            },
        };
        if let Some(answer) = answer {
            waiter.attempt.state.since = None;
            return Ok(answer);
        }
    }
}

/// Releases the cohort's former hold and queues up, in one request. `None`: no answer that counts, so the next request
/// is due.
async fn requeue(
    request: &Request,
    waiter: &mut Waiter<'_>,
    retry: &mut Retry<'_>,
    before: &Hold,
    sent: Instant,
) -> Result<Option<AcquireAnswer>> {
    let (context, keys, ticket) = (waiter.context, &request.keys, ticket(request, waiter));
    let unread = context.engine.unread_reply(keys, sent);
    let call = pin!(context.scripts().requeue(keys, before.id, (ticket, ticket.ttl())));
    let requeued = retry.bounded(sent, call).await;
    drop(unread);
    match requeued {
        Ok(Requeued::Granted { token, call_again, messages, now }) => {
            context.observe(now);
            context.deliver(messages);
            if call_again {
                context.reply_lost(keys);
            }
            Ok(Some(AcquireAnswer::Granted { token, counted_from: sent, replicas: 0 }))
        }
        Ok(Requeued::Queued { call_again, messages, now }) => {
            context.observe(now);
            waiter.attempt.state.before = None;
            let left_to_cohort = waiter.set_queued(sent, None, call_again);
            context.deliver(messages);
            Ok(Some(if left_to_cohort { AcquireAnswer::LeftToCohort } else { AcquireAnswer::Queued }))
        }
        Ok(Requeued::Released { listeners, now }) => {
            context.observe(now);
            waiter.attempt.state.before = None;
            context.engine.released_before(waiter.attempt.id(), sent);
            Ok(Some(AcquireAnswer::Released(listeners)))
        }
        // The hold was lost; or an earlier copy of the request was executed, and the ticket waits or was granted. The
        // next request, with the same attempt id, finds out.
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
                Asked::Decided(outcome) => Some(AcquireAnswer::Decided(outcome)),
                Asked::Answered(()) | Asked::Failed => None,
            })
        }
    }
}

/// Sends one request to acquire. `None`: ask again with the next request.
async fn acquire(
    request: &Request,
    waiter: &mut Waiter<'_>,
    retry: &mut Retry<'_>,
    sent: Instant,
) -> Result<Option<AcquireAnswer>> {
    let context: &Arc<_> = waiter.context;
    let ticket = ticket(request, waiter);
    let args = AcquireArgs {
        ticket,
        ticket_ttl: ticket.ttl(),
        wait: request.wait,
        max_waiters: request.max_waiters,
        not_after: waiter.not_after(sent, retry),
        tries_channel: context.channels.is_untried(crate::driver::channels::Announced::of(request.keys.kind)),
    };
    let is_first = waiter.attempt.state.asked == 1;
    let call = pin!(send(request, context, (waiter.attempt.id(), is_first), args, retry.limit(sent)));
    let (acquired, replicas) = match waiter.ask(retry, sent, call).await? {
        Asked::Answered(acquired) => acquired,
        Asked::Decided(outcome) => return Ok(Some(AcquireAnswer::Decided(outcome))),
        Asked::Failed => return Ok(None),
    };
    if matches!(acquired, Acquired::Stale { .. }) && mutant::on(Mutant::StaleNotLearned) {
        return Ok(None);
    }
    context.observe(acquired.now());
    match acquired {
        Acquired::Granted { token, .. } => {
            let mut counted_from = sent;
            if mutant::on(Mutant::LeaseFromReply) {
                counted_from = context.now();
            }
            Ok(Some(AcquireAnswer::Granted { token, counted_from, replicas }))
        }
        Acquired::Queued { holder_left, length, call_again, .. } => {
            observe::queued(length.saturating_sub(1));
            let left_to_cohort = waiter.set_queued(sent, holder_left, call_again);
            Ok(Some(if left_to_cohort { AcquireAnswer::LeftToCohort } else { AcquireAnswer::Queued }))
        }
        Acquired::Busy { is_retained, left, call_again: false, .. } => {
            Ok(Some(AcquireAnswer::Busy { is_retained, left }))
        }
        // There are more expired tickets to remove.
        Acquired::Busy { call_again: true, .. } => {
            retry.gets_on();
            Ok(None)
        }
        // The request arrived after `not_after`, and the answer has corrected the estimate of the server's clock.
        Acquired::Stale { .. } => Ok(None),
        Acquired::Over { limit, .. } => {
            waiter.attempt.turned_away();
            let reason = format!("{} permits of {limit}", request.amount);
            Err(request.error_because(ErrorKind::OverLimit, reason))
        }
        Acquired::Full { .. } => {
            waiter.attempt.turned_away();
            Err(request.error(ErrorKind::QueueFull))
        }
        // Only latches are absent.
        Acquired::Absent { .. } => Err(request.error(ErrorKind::Protocol)),
    }
}

/// Sends one request for all units that are free. `None`: ask again with the next request.
async fn drain(
    request: &Request,
    waiter: &mut Waiter<'_>,
    retry: &mut Retry<'_>,
    sent: Instant,
) -> Result<Option<AcquireAnswer>> {
    let context = waiter.context;
    let (ticket, not_after) = (ticket(request, waiter), waiter.not_after(sent, retry));
    let call = pin!(context.scripts().drain(&request.keys, ticket, not_after));
    let drained = match waiter.ask(retry, sent, call).await? {
        Asked::Answered(drained) => drained,
        Asked::Decided(outcome) => return Ok(Some(AcquireAnswer::Decided(outcome))),
        Asked::Failed => return Ok(None),
    };
    let (Drained::Granted { now, .. } | Drained::Busy { now, .. } | Drained::Stale { now }) = drained;
    context.observe(now);
    Ok(match drained {
        Drained::Granted { units, .. } => {
            waiter.attempt.state.amount = units;
            // If the hold needs replicas, the next request waits for them.
            Some(AcquireAnswer::Granted { token: Token::NONE, counted_from: sent, replicas: 0 })
        }
        Drained::Busy { call_again: false, .. } => Some(AcquireAnswer::Busy { is_retained: false, left: None }),
        // There are more expired holds or tickets to remove.
        Drained::Busy { call_again: true, .. } => {
            retry.gets_on();
            None
        }
        Drained::Stale { .. } => None,
    })
}

/// Sends one request for a hold that is left in Redis. `None`: ask again with the next request.
async fn resume(
    request: &Request,
    waiter: &mut Waiter<'_>,
    (retry, sent): (&mut Retry<'_>, Instant),
    left: AttemptId,
) -> Result<Option<AcquireAnswer>> {
    let context = waiter.context;
    let (ticket, not_after) = (ticket(request, waiter), waiter.not_after(sent, retry));
    let call = pin!(context.scripts().resume(&request.keys, left, (ticket, not_after)));
    let changed = match waiter.ask(retry, sent, call).await? {
        Asked::Answered(changed) => changed,
        Asked::Decided(outcome) => return Ok(Some(AcquireAnswer::Decided(outcome))),
        Asked::Failed => return Ok(None),
    };
    let (Changed::Done { now, .. } | Changed::Busy { now, .. } | Changed::NotHeld { now, .. } | Changed::Stale { now }) =
        changed;
    context.observe(now);
    Ok(match changed {
        Changed::Done { token, call_again, .. } => {
            if call_again {
                context.engine.promote_later(&request.keys, context.now(), request.lease);
            }
            // If the hold needs replicas, the next request waits for them.
            Some(AcquireAnswer::Granted { token, counted_from: sent, replicas: 0 })
        }
        // Giving the attempt up ends the hold that it has got.
        Changed::Busy { .. } => {
            let reason = "the handle is of more permits than its hold has".to_owned();
            return Err(request.error_because(ErrorKind::InvalidInput, reason));
        }
        Changed::NotHeld { call_again, .. } => {
            if call_again {
                context.engine.promote_later(&request.keys, context.now(), request.lease);
            }
            Some(AcquireAnswer::Busy { is_retained: false, left: None })
        }
        Changed::Stale { .. } => None,
    })
}

/// Sends the request, and waits for replicas in the same round trip if it can, and if the caller's `limit` leaves the
/// time. Returns how many have acknowledged what the request wrote.
async fn send(
    request: &Request,
    context: &Context,
    (id, is_first): (AttemptId, bool),
    args: AcquireArgs,
    limit: Option<Duration>,
) -> Result<(Acquired, u32), Failure> {
    let (keys, replicas) = (&*request.keys, request.replicas);
    let link = || WaitsOn { node: context.connection.node_of(keys.main()), replicas };
    let within = answer_within(request.lease, context.config.command_timeout).min(REPLICAS_WAIT);
    let may_wait = is_first && limit.is_none_or(|limit| within < limit);
    let wait = (replicas > 0).then(|| context.engine.wait_with_request(id, may_wait, link())).flatten();
    let Some(wait) = wait else {
        return context.scripts().acquire(keys, args).await.map(|acquired| (acquired, 0));
    };
    let within = limit.map_or(within, |limit| within.min(limit));
    let answer = context.scripts().acquire_acknowledged(keys, args, replicas, within).await;
    wait.answered(Some(answer.as_ref().is_ok_and(|(_, acknowledged)| *acknowledged >= replicas)));
    // A request that repeats another one may write nothing, and replicas acknowledge nothing then.
    answer.map(|(acquired, acknowledged)| (acquired, if is_first { acknowledged } else { 0 }))
}

fn ticket(request: &Request, waiter: &Waiter<'_>) -> Ticket {
    request.keys.kind.ticket(waiter.attempt.id(), request.lease, waiter.attempt.state.amount)
}
