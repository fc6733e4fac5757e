//! The acquisition of several primitives, one after the other.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use futures::future::{BoxFuture, Either, select};
use futures::stream::{FuturesUnordered, StreamExt};

use super::holds::Holds;
use super::order::ordered;
use crate::acquire::builder::choices::Options;
use crate::acquire::enter::{acquire, check_reentry};
use crate::acquire::out_of_time;
use crate::acquire::request::Request;
use crate::acquire::wait::{LastFailure, end_of};
use crate::context::Context;
use crate::engine::lease::{Hold, Loss};
use crate::error::{Error, ErrorKind, Result};
use crate::hold::guard::{NamedLoss, loss};
use crate::hold::owner::{HoldOwner, HoldSource};
use crate::runtime::timeout;

/// Signals that a hold acquired so far is lost.
type Losses = FuturesUnordered<BoxFuture<'static, NamedLoss>>;

/// Acquires all primitives of the options. `None`: others hold one of them, and the caller does not wait. If the future
/// is dropped, the acquisition that is under way is cancelled, and then the holds are released in the reverse order.
pub(super) async fn acquire_all(options: &Options, wait: bool) -> Result<Option<Holds>> {
    let parts = ordered(options)?;
    // All options are checked before the first request is sent.
    let mut requests = parts.iter().map(|part| options.request(part, wait)).collect::<Result<Vec<_>>>()?;
    for (part, request) in parts.iter().zip(&mut requests) {
        request.choose_holder();
        check_reentry(&part.primitive.source, request)?;
    }
    // One client's clock measures the timeout, because other clients may use other clocks.
    let context = options.first()?.primitive.context();
    let until = end_of(context, options.choices.timeout);
    let began = context.now();
    let (mut holds, mut losses) = (Holds::default(), Losses::new());
    for (part, mut request) in parts.iter().zip(requests) {
        if let Some(until) = until {
            let left = until.saturating_duration_since(context.now());
            if left.is_zero() {
                return Err(out_of_time(&part.primitive.source, &request, &LastFailure::default()));
            }
            request.timeout = Some(left);
        }
        let Some(owned) = next(&part.primitive.source, &request, &mut losses).await? else {
            give_back(context, holds, (began, until)).await;
            return Ok(None);
        };
        losses.push(Box::pin(watch(owned.hold.clone())));
        holds.push(owned);
    }
    // A loss that has not been signalled yet.
    match holds.iter().find_map(|owned| loss(owned)) {
        Some(loss) => Err(given_up(options.operation, &loss)),
        None => Ok(Some(holds)),
    }
}

/// Acquires one more primitive, unless a hold acquired so far is lost first.
async fn next(source: &Arc<HoldSource>, request: &Request, losses: &mut Losses) -> Result<Option<Arc<HoldOwner>>> {
    let acquired = pin!(acquire(source, request));
    let lost = poll_fn(|context| match losses.poll_next_unpin(context) {
        Poll::Ready(Some(loss)) => Poll::Ready(loss),
        Poll::Ready(None) | Poll::Pending => Poll::Pending,
    });
    match select(acquired, lost).await {
        Either::Left((acquired, _)) => acquired,
        Either::Right((loss, _)) => Err(given_up(request.operation, &loss)),
    }
}

/// Resolves when the hold is lost. The future has only the `Hold`, and therefore does not prevent the release.
async fn watch(hold: Arc<Hold>) -> NamedLoss {
    NamedLoss::of(&hold, hold.lost().await)
}

/// Releases the holds of an attempt that met another holder. When the timeout of the attempt is over, or the client's
/// retry timeout, the background finishes the releases: the caller waits for them no longer than for the attempt
/// itself.
async fn give_back(context: &Context, holds: Holds, (began, until): (Instant, Option<Instant>)) {
    let release = pin!(holds.release());
    let retry_timeout = context.config.retry_timeout;
    let given_up = (!retry_timeout.is_zero()).then(|| began + retry_timeout);
    let released = match until.into_iter().chain(given_up).min() {
        Some(until) => timeout(&context.executor, until.saturating_duration_since(context.now()), release).await,
        None => Some(release.await),
    };
    // The attempt has failed already. A hold whose release fails ends with its lease.
    drop(released);
}

/// The error if a hold was lost while the acquisition waited for another one.
fn given_up(operation: &'static str, loss: &NamedLoss) -> Error {
    match loss.loss() {
        Loss::Closed => Error::new(ErrorKind::Closed, operation).with_name(loss.name()),
        _ => loss.error(operation),
    }
}

#[cfg(test)]
mod tests;
