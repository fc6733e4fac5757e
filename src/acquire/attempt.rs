//! Follows one attempt id from its first request until its outcome is known.

use std::sync::Arc;
use std::time::Instant;

use futures::future::BoxFuture;

use crate::acquire::ask::{AcquireAnswer, ask};
use crate::acquire::pending::{GrantExpired, Terms};
use crate::acquire::request::Request;
use crate::acquire::wait::Waiter;
use crate::acquire::woken;
use crate::engine::attempt::Outcome;
use crate::engine::lease::{Hold, deadline};
use crate::error::{Error, ErrorKind, Result};
use crate::mutant::{self, Mutant};
use crate::protocol::token::Token;

/// The outcome of an attempt.
pub(super) enum Decision {
    Held {
        hold: Arc<Hold>,
        /// Whether as many replicas as the hold needs have acknowledged the grant.
        is_acknowledged: bool,
    },
    Busy {
        /// Whether the hold in the way is released for one that waits, unless it is used.
        is_retained: bool,
    },
    /// The attempt failed, but another one may succeed.
    Again,
    /// Its ticket waits, and belongs to the cohort.
    LeftToCohort,
    /// The heartbeats of its ticket have got no usable answer since then, which is too long.
    Unanswered(Error, Instant),
    /// The lease had expired when the grant became known.
    GrantExpired,
}

/// Asks the server, and waits in the queue if need be. The waiter gives the attempt up when it is dropped before the
/// attempt is decided.
pub(super) async fn run(request: &Request, waiter: &mut Waiter<'_>) -> Result<Decision> {
    loop {
        let is_decided = std::mem::take(&mut waiter.attempt.state.is_decided);
        let answer = if is_decided {
            AcquireAnswer::Queued
        } else {
            // On the heap: a waiting future would carry for hours what only a request needs.
            let asked: BoxFuture<'_, _> = match request.keys.kind.has_queue() {
                true => Box::pin(ask(request, waiter)),
                false => Box::pin(woken::ask(request, waiter)),
            };
            asked.await?
        };
        // The answer is given away before the wait for the same reason.
        let decision = if matches!(answer, AcquireAnswer::Queued) {
            drop(answer);
            let outcome = waiter.decided().await;
            decided(request, waiter, outcome)?
        } else {
            answered(request, waiter, answer)?
        };
        // Without a decision, the loop asks again: the answer is up to date, and starts the lease anew.
        if let Some(decision) = decision {
            return Ok(decision);
        }
    }
}

/// `None`: the next request is due.
fn answered(request: &Request, waiter: &mut Waiter<'_>, answer: AcquireAnswer) -> Result<Option<Decision>> {
    Ok(match answer {
        AcquireAnswer::Granted { token, counted_from, replicas } => {
            Some(hold(request, waiter, token, Counts { lease: counted_from, limit: counted_from }, replicas))
        }
        AcquireAnswer::Busy { is_retained, .. } => {
            waiter.attempt.turned_away();
            Some(Decision::Busy { is_retained })
        }
        AcquireAnswer::LeftToCohort => {
            waiter.attempt.leave_to_cohort();
            Some(Decision::LeftToCohort)
        }
        AcquireAnswer::Decided(outcome) => decided(request, waiter, outcome)?,
        AcquireAnswer::Queued | AcquireAnswer::Released(_) => None,
    })
}

/// `None`: the next request is due.
fn decided(request: &Request, waiter: &mut Waiter<'_>, outcome: Outcome) -> Result<Option<Decision>> {
    let context = waiter.context;
    let asked_once = waiter.attempt.state.asked == 1;
    match outcome {
        Outcome::Granted { token, mut counted_from } => {
            if mutant::on(Mutant::LeaseFromMessage) {
                counted_from = context.now();
            }
            let left = deadline(counted_from, request.lease).saturating_duration_since(context.now());
            // If the request was sent twice, the second copy may have queued up anew after the first grant had expired,
            // and this may be the first grant: too old to be counted from the second copy.
            let mut trusted = asked_once;
            if mutant::on(Mutant::GrantTrustedAfterResend) {
                trusted = true;
            }
            let is_held = trusted && left >= request.lease / 2;
            // The lease may count from a heartbeat long before the grant. The limit is about the work, which begins
            // now.
            let counts = Counts { lease: counted_from, limit: context.now() };
            Ok(is_held.then(|| hold(request, waiter, token, counts, 0)))
        }
        Outcome::Gone => {
            // If the request was sent twice, a heartbeat may have been answered between the two, and the second copy
            // may have queued up since. Giving the attempt up cancels that ticket.
            let mut trusted = asked_once;
            if mutant::on(Mutant::GoneTrustedAfterResend) {
                trusted = true;
            }
            if trusted {
                waiter.attempt.forget();
            } else {
                waiter.attempt.abandon();
            }
            Ok(Some(Decision::Again))
        }
        Outcome::Failed(failure, since) => {
            waiter.attempt.alone = true;
            let error = failure.into_error(request.operation).with_name(&request.keys.name);
            Ok(Some(Decision::Unanswered(error, since)))
        }
        Outcome::Closed => Err(request.error(ErrorKind::Closed)),
    }
}

/// From when on a hold's lease and its [limit](crate::Acquire::hold_at_most) count.
struct Counts {
    lease: Instant,
    limit: Instant,
}

/// `acknowledged`: by so many replicas.
fn hold(request: &Request, waiter: &mut Waiter<'_>, token: Token, counts: Counts, acknowledged: u32) -> Decision {
    let Request { lease, replicas, .. } = *request;
    let term = request.term(counts.limit);
    let amount = waiter.attempt.state.amount;
    match waiter.attempt.hold(amount, token, Terms { term, lease, replicas }, counts.lease) {
        Ok(Some(hold)) => Decision::Held { hold, is_acknowledged: acknowledged >= replicas },
        Ok(None) => Decision::Again,
        Err(GrantExpired) => Decision::GrantExpired,
    }
}
