//! The acquire loop: within the timeout, for a holder or in a cohort, one attempt after the other.

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use crate::acquire::attempt::Decision;
use crate::acquire::confirm::confirm;
use crate::acquire::member::Member;
use crate::acquire::pending::PendingAttempt;
use crate::acquire::request::Request;
use crate::acquire::wait::{Waiter, end_of, in_time};
use crate::context::Context;
use crate::engine::closed::Closed;
use crate::engine::turn::Turn;
use crate::error::{Error, ErrorKind, Result};
use crate::handle::Primitive;
use crate::holder::Holder;
use crate::mutant::{self, Mutant};
use crate::owned::Owned;
use crate::reentry::{Entry, Reentry};
use crate::trace;

mod ask;
mod attempt;
pub(crate) mod builder;
pub(crate) mod confirm;
pub(crate) mod member;
pub(crate) mod pending;
pub(crate) mod request;
pub(crate) mod wait;

/// After this many grants that expired before they became known, an acquisition fails: the answers take too long for its lease.
const MOST_EXPIRED: u32 = 3;

/// Acquires within the request's timeout. `None`: others hold it, and the request does not wait.
///
/// The future can be dropped at any point: what Redis has of the acquisition, or is about to have, is cancelled in the
/// background.
pub(crate) async fn acquire(primitive: &Primitive, request: &Request) -> Result<Option<Arc<Owned>>> {
    let Primitive { context, reentry, .. } = primitive;
    let acquisition = async {
        let until = end_of(context, request.timeout);
        // Pinned here: a future that is handed over by value would be stored twice, for as long as the acquisition waits.
        let entered = pin!(enter(context, reentry, request, until));
        in_time(context, until, entered, |kind| request.error(kind)).await
    };
    trace::acquiring(request.operation, &request.keys.name, request.fair, || context.now(), acquisition).await
}

/// Re-enters a hold of the request's holder, or acquires.
async fn enter(
    context: &Arc<Context>,
    reentry: &Arc<Reentry<Owned>>,
    request: &Request,
    until: Option<Instant>,
) -> Result<Option<Arc<Owned>>> {
    let Some(holder) = request.holder else {
        let owned = own(context, request, until, None).await?;
        return Ok(owned.map(Arc::new));
    };
    let can_enter = |owned: &Owned| {
        if mutant::on(Mutant::LostHoldEntered) {
            return true;
        }
        owned.hold.loss(context.now()).is_none()
    };
    loop {
        match reentry.enter(holder, &request.keys, can_enter) {
            // The holder would wait for its own hold.
            Entry::Held(owned) if owned.hold.amount < request.amount => {
                return Err(request.error(ErrorKind::WouldDeadlock));
            }
            Entry::Held(owned) => return Ok(Some(owned)),
            // Another task of the holder acquires, and a try does not wait for it.
            Entry::Acquiring(_) if !request.wait => return Ok(None),
            Entry::Acquiring(listener) => listener.await,
            Entry::Vacant(vacant) => {
                let holder = Some((holder, reentry.clone()));
                let Some(owned) = own(context, request, until, holder).await? else { return Ok(None) };
                let owned = Arc::new(owned);
                vacant.fill(&owned);
                return Ok(Some(owned));
            }
        }
    }
}

/// Acquires for the holder, if there is one, with one attempt id after the other: in the client's cohort, or alone.
async fn own(
    context: &Arc<Context>,
    request: &Request,
    until: Option<Instant>,
    holder: Option<(Holder, Arc<Reentry<Owned>>)>,
) -> Result<Option<Owned>> {
    let mut member = request.joins_cohort.then(|| Member::join(context, request)).transpose()?;
    let mut retry = context.retry(request.operation, &request.keys.name);
    let mut expired = 0;
    loop {
        let turn = match &mut member {
            Some(member) => member.turn(request).await?,
            None => Turn::Lead,
        };
        let began = context.now();
        let failed = |error: &Error| member.iter().for_each(|member| member.fail(error, began));
        let attempt = match turn {
            Turn::Lead => open(context, request, member.as_ref())?,
            Turn::Attempt(handoff) => PendingAttempt::resume(context, handoff),
            Turn::Held { hold, .. } => {
                let lost = hold.loss(began).is_some();
                let owned = Owned::new(context.clone(), hold, holder.clone());
                if lost {
                    // The member looked at it too late: the drop cleans up, and the member asks the server.
                    continue;
                }
                return Ok(Some(owned.in_cohort(member)));
            }
        };
        let waiter = Waiter::new(context, attempt, until);
        match attempt::run(request, waiter, &mut retry).await.inspect_err(failed)? {
            Decision::Held(hold) => {
                // In no cohort yet: a grant that is given up here is released, and not handed off.
                let owned = Owned::new(context.clone(), hold, holder.clone());
                if !confirm(context, request.operation, &owned.hold).await.inspect_err(failed)? {
                    continue;
                }
                if let Some(member) = &mut member {
                    member.set_held(&owned.hold);
                }
                return Ok(Some(owned.in_cohort(member)));
            }
            Decision::Busy => return Ok(None),
            Decision::Again | Decision::LeftToCohort => {}
            Decision::GrantExpired if !request.wait => return Ok(None),
            Decision::GrantExpired => expired += 1,
        }
        if expired == MOST_EXPIRED {
            let reason = format!("the answers take longer than the lease of {:?}", request.lease);
            return Err(request.error_because(ErrorKind::Unavailable, reason)).inspect_err(failed);
        }
    }
}

fn open<'a>(context: &'a Context, request: &Request, member: Option<&Member>) -> Result<PendingAttempt<'a>> {
    let opened = match member {
        Some(member) => member.open(request).map(|handoff| PendingAttempt::resume(context, handoff)),
        None => PendingAttempt::open(context, &request.keys, request.amount, request.lease),
    };
    opened.map_err(|Closed| request.error(ErrorKind::Closed))
}

#[cfg(test)]
mod tests;
