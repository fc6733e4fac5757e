//! The way into an acquisition: its time limit, the hold that its holder may have already, and the wait for a hold that
//! another client keeps idle.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use crate::acquire::blocked;
use crate::acquire::request::Request;
use crate::acquire::wait::{LastFailure, end_of, in_time};
use crate::acquire::{Acquisition, Owned, out_of_time, own};
use crate::error::{Error, ErrorKind, Result};
use crate::hold::owner::{HoldOwner, HoldSource};
use crate::hold::quorum::QuorumGrant;
use crate::hold::reentry::{Entry, Vacant};
use crate::holder::Holder;
use crate::mutant::{self, Mutant};
use crate::observe;
use crate::observe::meter;

/// Acquires within the request's timeout. `None`: others hold it, and the request does not wait.
///
/// The future can be dropped at any point: what Redis has of the acquisition, or is about to have, is cancelled in the
/// background.
pub(crate) fn acquire<'a>(
    source: &'a Arc<HoldSource>,
    request: &'a Request,
) -> impl Future<Output = Result<Option<Arc<HoldOwner>>>> + Send + 'a {
    let acquisition = async move {
        let until = end_of(&source.context, request.timeout);
        match once(source, request, until).await? {
            Owned::Held(owned) => Ok(Some(owned)),
            Owned::Busy => Ok(None),
            // On the heap, as it is rare.
            Owned::Retained => Box::pin(of_retained(source, request, until)).await,
        }
    };
    let observed = source.context.observed(request.operation, &request.keys);
    observe::acquiring(observed, request.fair, meter::of_acquisition, acquisition)
}

async fn once(source: &Arc<HoldSource>, request: &Request, until: Option<Instant>) -> Result<Owned> {
    let last = LastFailure::default();
    // Pinned here, because a future that is passed by value would be stored twice for the whole wait.
    let mut look = blocked::look(source, request, (until, &last));
    let mut entered = pin!(enter(source, request, (until, &last)));
    // The look ends no wait.
    let entered = pin!(poll_fn(|context| {
        if look.as_mut().is_some_and(|look| look.as_mut().poll(context).is_ready()) {
            look = None;
        }
        entered.as_mut().poll(context)
    }));
    in_time(&source.context, until, entered, || out_of_time(source, request, &last)).await
}

/// Waits until the client that keeps the hold has released it, and no longer than the caller does. `None`: it uses the
/// hold.
async fn of_retained(
    source: &Arc<HoldSource>,
    request: &Request,
    until: Option<Instant>,
) -> Result<Option<Arc<HoldOwner>>> {
    if request.for_retained.is_zero() {
        return Ok(None);
    }
    let limit = end_of(&source.context, Some(request.for_retained));
    let until = limit.into_iter().chain(until).min();
    match once(source, &Request { wait: true, ..request.clone() }, until).await {
        Ok(Owned::Held(owned)) => Ok(Some(owned)),
        Ok(Owned::Busy | Owned::Retained) => Ok(None),
        Err(error) if error.kind() == ErrorKind::TimedOut => Ok(None),
        Err(error) => Err(error),
    }
}

/// What the holder of a request finds.
enum Entered<'a> {
    Held(Arc<HoldOwner>),
    /// Another task of the holder acquires.
    Busy,
    Vacant(Vacant<'a, HoldOwner>),
}

/// Re-enters a hold of the request's holder, or acquires.
async fn enter(
    source: &Arc<HoldSource>,
    request: &Request,
    (until, last): (Option<Instant>, &LastFailure),
) -> Result<Owned> {
    let mut vacant = None;
    if let Some(holder) = request.holder {
        match look(source, request, holder).await? {
            Entered::Held(owned) => return Ok(Owned::Held(owned)),
            Entered::Busy => return Ok(Owned::Busy),
            Entered::Vacant(found) => vacant = Some(found),
        }
    }
    let acquisition = Acquisition { source, request, until, last };
    let owned = match &source.quorum {
        None => own(&acquisition).await?,
        Some(quorum) => {
            let granted = quorum.clone().acquire(request, until).await?;
            granted.map_or(Owned::Busy, |QuorumGrant { hold, ends }| {
                acquisition.granted(acquisition.owned(hold).of_quorum(ends))
            })
        }
    };
    if let (Owned::Held(owned), Some(vacant)) = (&owned, vacant) {
        vacant.fill(owned);
    }
    Ok(owned)
}

/// Fails if the request denies re-entry and its holder has the hold already. For several requests, before the first is
/// sent.
pub(crate) fn check_reentry(source: &HoldSource, request: &Request) -> Result<()> {
    let holder = request.holder.filter(|_| request.denies_reentry);
    let held = holder.and_then(|holder| source.reentry.held(holder, &request.keys));
    if held.is_some_and(|owned| owned.hold.loss(source.context.now()).is_none()) {
        return Err(denied(request));
    }
    Ok(())
}

fn denied(request: &Request) -> Error {
    let reason = "the holder already holds it, and re-entry is denied".to_owned();
    request.error_because(ErrorKind::WouldDeadlock, reason)
}

/// Looks for a hold of the holder. While another task of the holder acquires, a request that waits does so here.
async fn look<'a>(source: &'a HoldSource, request: &Request, holder: Holder) -> Result<Entered<'a>> {
    let can_enter = |owned: &HoldOwner| {
        if mutant::on(Mutant::LostHoldEntered) {
            return true;
        }
        owned.hold.loss(source.context.now()).is_none()
    };
    loop {
        match source.reentry.enter(holder, &request.keys, can_enter) {
            Entry::Held(_) if request.denies_reentry => return Err(denied(request)),
            // The holder would wait for its own hold.
            Entry::Held(owned) if owned.hold.amount < request.amount => {
                let reason = "the holder already reads".to_owned();
                return Err(request.error_because(ErrorKind::WouldDeadlock, reason));
            }
            Entry::Held(owned) => return Ok(Entered::Held(owned)),
            // A try does not wait for the other task.
            Entry::Acquiring(_) if !request.wait => return Ok(Entered::Busy),
            Entry::Acquiring(listener) => listener.await,
            Entry::Vacant(vacant) => return Ok(Entered::Vacant(vacant)),
        }
    }
}
