//! Waiting for a latch: a ticket, and nothing to hold.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::acquire::pending::PendingAttempt;
use crate::acquire::wait::{Asked, Waiter, end_of, in_time};
use crate::context::Context;
use crate::driver::retry::Retry;
use crate::engine::attempt::Outcome;
use crate::engine::closed::Closed;
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::key::Keys;
use crate::protocol::reply::latch::LatchWait;
use crate::protocol::ticket::ticket_ttl;
use crate::protocol::token::Token;
use crate::trace;

const OPERATION: &str = "wait";

/// The server ends a latch at the end of its last millisecond, so a look at its end comes a little later.
const AFTER_END: Duration = Duration::from_millis(5);

/// Waits until the latch is open, within the timeout.
pub(super) async fn wait(context: &Arc<Context>, keys: &Arc<Keys>, timeout: Option<Duration>) -> Result<()> {
    let waiting = async {
        let until = end_of(context, timeout);
        let opened = pin!(until_open(context, keys, until));
        in_time(context, until, opened, |kind| error(keys, kind)).await
    };
    trace::acquiring(OPERATION, &keys.name, true, || context.now(), waiting).await
}

async fn until_open(context: &Arc<Context>, keys: &Arc<Keys>, until: Option<Instant>) -> Result<()> {
    // A latch is not held: the lease only says how long the ticket lives without a heartbeat.
    let attempt = PendingAttempt::open(context, keys, 1, context.config.lease);
    let attempt = attempt.map_err(|Closed| error(keys, ErrorKind::Closed))?;
    let mut waiter = Waiter::new(context, attempt, until);
    let mut retry = context.retry(OPERATION, &keys.name);
    // On the heap: a waiting future would carry for hours what only a request needs.
    let known = Box::pin(ask(keys, &mut waiter, &mut retry)).await?;
    let outcome = match known {
        Some(outcome) => outcome,
        None => waiter.decided().await,
    };
    match outcome {
        Outcome::Granted { .. } => {
            // If the request was sent twice, the second copy may wait for the next latch of the name. The drop cancels its
            // ticket.
            if waiter.attempt.state.asked == 1 {
                waiter.attempt.forget();
            }
            Ok(())
        }
        // Another request would find no latch, as if it had been counted down. The ticket may still be there: the drop cancels it.
        Outcome::Gone => {
            let reason = "the latch ended, and it is not known whether it was counted down before";
            Err(Error::because(ErrorKind::Lost, OPERATION, reason).with_name(&keys.name))
        }
        Outcome::Failed(failure) => Err(retry.error(failure)),
        Outcome::Closed => Err(error(keys, ErrorKind::Closed)),
    }
}

/// Sends requests until there is an answer. `None`: the ticket waits.
async fn ask(keys: &Arc<Keys>, waiter: &mut Waiter<'_>, retry: &mut Retry<'_>) -> Result<Option<Outcome>> {
    let context = waiter.context;
    let attempt_id = waiter.attempt.id().text();
    let ttl = ticket_ttl(context.config.lease);
    loop {
        let sent = waiter.next_request().ok_or_else(|| error(keys, ErrorKind::Closed))?;
        let not_after = waiter.not_after(sent);
        let scripts = context.scripts().latch();
        let call = pin!(scripts.wait(keys.latch(), &attempt_id, ttl, not_after));
        match waiter.ask(retry, call).await? {
            Asked::Answered(LatchWait::Open { now }) => {
                context.observe(now);
                return Ok(Some(Outcome::Granted { token: Token::NONE, counted_from: sent }));
            }
            Asked::Answered(LatchWait::Queued { left, now }) => {
                context.observe(now);
                waiter.set_queued(sent, left.map(|left| left + AFTER_END), false);
                return Ok(None);
            }
            // The request took longer than `not_after` allowed, and the answer has corrected the estimate of the server's clock.
            Asked::Answered(LatchWait::Stale { now }) => context.observe(now),
            Asked::Decided(outcome) => return Ok(Some(outcome)),
            Asked::Failed => {}
        }
    }
}

fn error(keys: &Keys, kind: ErrorKind) -> Error {
    Error::new(kind, OPERATION).with_name(&keys.name)
}
