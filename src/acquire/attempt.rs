//! One attempt id from its first request until it is decided.

use std::sync::Arc;
use std::time::Instant;

use crate::acquire::ask::{Answer, ask};
use crate::acquire::pending::{GrantExpired, Terms};
use crate::acquire::request::Request;
use crate::acquire::wait::Waiter;
use crate::driver::retry::Retry;
use crate::engine::attempt::Outcome;
use crate::engine::lease::{Hold, Term, deadline};
use crate::error::{ErrorKind, Result};
use crate::mutant::{self, Mutant};
use crate::protocol::token::Token;

/// What became of an attempt.
pub(super) enum Decision {
    Held(Arc<Hold>),
    Busy,
    /// The attempt came to nothing; another one may succeed.
    Again,
    /// Its ticket waits, and belongs to the cohort.
    LeftToCohort,
    /// The lease had expired when the grant became known.
    GrantExpired,
}

/// Asks the server, and waits in the queue if need be. Dropped before the attempt is decided, the attempt is abandoned.
pub(super) async fn run(request: &Request, mut waiter: Waiter<'_>, retry: &mut Retry<'_>) -> Result<Decision> {
    let context = waiter.context;
    loop {
        let is_decided = std::mem::take(&mut waiter.attempt.state.is_decided);
        // On the heap: a waiting future would carry for hours what only a request needs.
        let answer = if is_decided { Answer::Queued } else { Box::pin(ask(request, &mut waiter, retry)).await? };
        let outcome = match answer {
            Answer::Granted { token, counted_from } => return Ok(hold(request, waiter, token, counted_from)),
            Answer::Busy => {
                waiter.attempt.forget();
                return Ok(Decision::Busy);
            }
            Answer::LeftToCohort => {
                waiter.attempt.leave_to_cohort();
                return Ok(Decision::LeftToCohort);
            }
            Answer::Queued => waiter.decided().await,
            Answer::Decided(outcome) => outcome,
        };
        let asked_once = waiter.attempt.state.asked == 1;
        match outcome {
            Outcome::Granted { token, mut counted_from } => {
                if mutant::on(Mutant::LeaseFromMessage) {
                    counted_from = context.now();
                }
                let left = deadline(counted_from, request.lease).saturating_duration_since(context.now());
                // If the request was sent twice, the second copy may have queued up anew after the first grant had expired, and
                // this may be the first grant: too old to be counted from the second copy.
                let mut trusted = asked_once;
                if mutant::on(Mutant::GrantTrustedAfterResend) {
                    trusted = true;
                }
                if trusted && left >= request.lease / 2 {
                    return Ok(hold(request, waiter, token, counted_from));
                }
                // The loop asks again: the answer is up to date, and starts the lease anew.
            }
            Outcome::Gone => {
                // If the request was sent twice, a heartbeat may have been answered between the two, and the second copy may have
                // queued up since. Giving the attempt up cancels that ticket.
                let mut trusted = asked_once;
                if mutant::on(Mutant::GoneTrustedAfterResend) {
                    trusted = true;
                }
                if trusted {
                    waiter.attempt.forget();
                } else {
                    waiter.attempt.abandon();
                }
                return Ok(Decision::Again);
            }
            Outcome::Failed(failure) => {
                waiter.attempt.alone = true;
                return Err(retry.error(failure));
            }
            Outcome::Closed => return Err(request.error(ErrorKind::Closed)),
        }
    }
}

fn hold(request: &Request, mut waiter: Waiter<'_>, token: Token, counted_from: Instant) -> Decision {
    let Request { renewed, lease, at_most, replicas, .. } = *request;
    let term = if renewed { Term::capped(counted_from, at_most) } else { Term::Fixed };
    let amount = waiter.attempt.state.amount;
    match waiter.attempt.hold(amount, token, Terms { term, lease, replicas }, counted_from) {
        Ok(Some(hold)) => Decision::Held(hold),
        Ok(None) => Decision::Again,
        Err(GrantExpired) => Decision::GrantExpired,
    }
}
