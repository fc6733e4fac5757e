//! Waiting for a latch, a barrier or a change of an election, which takes a ticket but never a hold.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::select;

use crate::acquire::pending::PendingAttempt;
use crate::acquire::wait::{Asked, LastFailure, Waiter, end_of, in_time, timed_out};
use crate::context::Context;
use crate::engine::attempt::Outcome;
use crate::engine::turn::Closed;
use crate::error::{Error, ErrorKind, Result};
use crate::mutant::{self, Mutant};
use crate::observe::{self, meter};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::dispatch::AcquireArgs;
use crate::protocol::key::Keys;
use crate::protocol::kind::Kind;
use crate::protocol::reply::Acquired;
use crate::protocol::token::Token;
use crate::runtime::timeout;

/// There are no units to hold, so a waiter asks for none.
const AMOUNT: u32 = 0;

/// A wait until the latch is open, the generation of the barrier has ended or the election has changed.
pub(crate) struct TicketWait<'a> {
    pub(crate) context: &'a Arc<Context>,
    pub(crate) operation: &'static str,
    pub(crate) keys: &'a Arc<Keys>,
    pub(crate) timeout: Option<Duration>,
    /// The reason in the error if the server knows nothing of the waiter any more.
    pub(crate) gone: &'static str,
}

impl TicketWait<'_> {
    /// Waits as an operation of its own. `ended` reads the token of the reply.
    pub(crate) async fn observed<T>(self, ended: impl FnOnce(Token) -> Result<T>) -> Result<T> {
        let observed = self.context.observed(self.operation, self.keys);
        observe::acquiring(observed, true, meter::of_wait, self.ended(ended)).await
    }

    /// Waits as a part of an operation. `ended` reads the token of the reply.
    pub(crate) async fn ended<T>(self, ended: impl FnOnce(Token) -> Result<T>) -> Result<T> {
        let Self { context, operation, keys, timeout, gone } = self;
        let until = end_of(context, timeout);
        let last = LastFailure::default();
        let opened = pin!(stay(context, operation, keys, (until, &last), gone, |_, _| {}));
        let late = || timed_out(context, (keys, AMOUNT), error(operation, keys, ErrorKind::TimedOut), &last);
        in_time(context, until, opened, late).await.and_then(ended)
    }
}

/// Keeps a ticket until it is known how its wait has ended. Tells when the ticket waits, and after which generation.
/// `until`: after that time, no request may be executed that asks for the ticket.
pub(crate) async fn stay(
    context: &Arc<Context>,
    operation: &'static str,
    keys: &Arc<Keys>,
    (until, last): (Option<Instant>, &LastFailure),
    gone: &'static str,
    waits: impl FnOnce(AttemptId, u64),
) -> Result<Token> {
    if keys.kind.has_parties() {
        // On the heap: a waiting future would carry it for hours.
        Box::pin(after_those_that_left(context, operation, keys)).await?;
    }
    // Nothing is held. The lease only says how long the ticket lives without a heartbeat.
    let attempt = PendingAttempt::open(&**context, keys, AMOUNT, context.config.lease);
    let attempt = attempt.map_err(|Closed| error(operation, keys, ErrorKind::Closed))?;
    let mut waiter = Waiter::new(context, attempt, until, last);
    // On the heap: a waiting future would carry for hours what only a request needs.
    let asked = Box::pin(ask(operation, keys, &mut waiter)).await;
    if asked.is_err() && !waiter.attempt.may_be_done {
        // No request has left a ticket, and none may do so later: there is nothing to clean up.
        waiter.attempt.forget();
    }
    let outcome = match asked? {
        Known::Over(outcome) => outcome,
        Known::Waits { after } => {
            waits(waiter.attempt.id(), after);
            waiter.decided().await
        }
    };
    match outcome {
        Outcome::Granted { token, .. } => {
            // If the request was sent twice, the second copy may wait for the next latch of the name. Dropping the
            // attempt cancels that ticket.
            if waiter.attempt.state.asked == 1 {
                waiter.attempt.forget();
            }
            Ok(token)
        }
        // Another request would find no latch, as if it had been counted down, or arrive at the next generation of a
        // barrier. The ticket may still exist; dropping the attempt cancels it.
        Outcome::Gone => Err(Error::because(ErrorKind::Lost, operation, gone).with_name(&keys.name)),
        Outcome::Failed(failure, _) => Err(failure.into_error(operation).with_name(&keys.name)),
        Outcome::Closed => Err(error(operation, keys, ErrorKind::Closed)),
    }
}

/// Waits until the server knows which parties of this client have given up. Otherwise it would count them beside the
/// new party, and a task that tries again would count twice.
async fn after_those_that_left(context: &Arc<Context>, operation: &'static str, keys: &Arc<Keys>) -> Result<()> {
    if mutant::on(Mutant::ArrivesBeforeItHasLeft) {
        return Ok(());
    }
    let (began, patience) = (context.now(), context.patience());
    let (left, closed) = (pin!(context.engine.all_have_left(keys)), pin!(context.engine.closed()));
    let known = timeout(&context.executor, patience, select(left, closed)).await;
    // At the end of the runtime, the timer ends early, and so does all that follows.
    if known.is_some() || context.now().saturating_duration_since(began) < patience {
        return Ok(());
    }
    let reason = "the server has not confirmed that a party of this client has left";
    Err(Error::because(ErrorKind::Unavailable, operation, reason).with_name(&keys.name))
}

/// What an answer says.
enum Known {
    Over(Outcome),
    Waits {
        /// At a barrier: the last generation that has ended.
        after: u64,
    },
}

/// Sends requests until there is an answer.
async fn ask(operation: &'static str, keys: &Arc<Keys>, waiter: &mut Waiter<'_>) -> Result<Known> {
    let context = waiter.context;
    let mut retry = context.retry(operation, keys);
    let ticket = keys.kind.ticket(waiter.attempt.id(), context.config.lease, AMOUNT);
    loop {
        let sent = waiter.next_request(&mut retry).await?.ok_or_else(|| error(operation, keys, ErrorKind::Closed))?;
        let not_after = waiter.not_after(sent, &retry);
        let args = AcquireArgs {
            ticket,
            ticket_ttl: ticket.ttl(),
            wait: true,
            max_waiters: 0,
            not_after,
            tries_channel: false,
        };
        let call = pin!(context.scripts().acquire(keys, args));
        match waiter.ask(&mut retry, sent, call).await? {
            Asked::Answered(Acquired::Granted { token, now }) => {
                context.observe(now);
                return Ok(Known::Over(Outcome::Granted { token, counted_from: sent }));
            }
            Asked::Answered(Acquired::Queued { holder_left, length: after, call_again, now }) => {
                context.observe(now);
                waiter.set_queued(sent, holder_left, call_again);
                return Ok(Known::Waits { after });
            }
            Asked::Answered(Acquired::Absent { now }) => {
                context.observe(now);
                // An earlier copy may have waited for a latch that has ended since, counted down or not.
                return Ok(Known::Over(match waiter.attempt.may_be_done {
                    true => Outcome::Gone,
                    false => Outcome::Granted { token: Token::NONE, counted_from: sent },
                }));
            }
            // The request took longer than `not_after` allowed, and the answer has corrected the estimate of the
            // server's clock.
            Asked::Answered(Acquired::Stale { now }) => context.observe(now),
            Asked::Answered(Acquired::Over { limit, now }) => {
                context.observe(now);
                let reason = match keys.kind {
                    Kind::Inside { parties, .. } if parties == limit => {
                        format!("{parties} parties are inside, and have not all left")
                    }
                    _ => format!("those that wait are of a barrier of {limit} parties"),
                };
                return Err(Error::because(ErrorKind::OtherParties, operation, reason).with_name(&keys.name));
            }
            // Replies about primitives that can be held. The scripts that are called here never send them.
            Asked::Answered(Acquired::Busy { .. } | Acquired::Full { .. }) => {
                return Err(error(operation, keys, ErrorKind::Protocol));
            }
            Asked::Decided(outcome) => return Ok(Known::Over(outcome)),
            Asked::Failed => {}
        }
    }
}

fn error(operation: &'static str, keys: &Keys, kind: ErrorKind) -> Error {
    Error::new(kind, operation).with_name(&keys.name)
}
