//! The acquire loop: within the timeout, for a holder or in a cohort, one attempt after the other.

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use crate::acquire::attempt::Decision;
use crate::acquire::confirm::confirm;
use crate::acquire::member::{InCohort, Member};
use crate::acquire::pending::PendingAttempt;
use crate::acquire::request::Request;
use crate::acquire::wait::{LastFailure, Waiter, end_of, in_time, timed_out};
use crate::cohort::id::CohortId;
use crate::context::Context;
use crate::engine::closed::Closed;
use crate::engine::lease::Hold;
use crate::engine::turn::{AttemptHandoff, Turn};
use crate::error::{Error, ErrorKind, Result};
use crate::hold::owner::{HoldOwner, HoldSource};
use crate::hold::quorum::QuorumGrant;
use crate::hold::reentry::{Entry, Vacant};
use crate::holder::Holder;
use crate::mutant::{self, Mutant};
use crate::trace;

mod ask;
mod attempt;
pub(crate) mod builder;
pub(crate) mod confirm;
pub(crate) mod member;
pub(crate) mod pending;
pub(crate) mod request;
pub(crate) mod wait;

/// After this many grants that expired before they became known, an acquisition fails: the answers take too long for
/// its lease.
const MOST_EXPIRED: u32 = 3;

/// One acquisition, from one server.
pub(crate) struct Acquisition<'a> {
    pub(crate) source: &'a Arc<HoldSource>,
    pub(crate) request: &'a Request,
    /// When the caller gives up.
    pub(crate) until: Option<Instant>,
    pub(crate) last: &'a LastFailure,
}

impl Acquisition<'_> {
    fn owned(&self, hold: Arc<Hold>) -> HoldOwner {
        HoldOwner::new(self.source.clone(), hold, self.request.holder)
    }
}

/// Acquires within the request's timeout. `None`: others hold it, and the request does not wait.
///
/// The future can be dropped at any point: what Redis has of the acquisition, or is about to have, is cancelled in the
/// background.
pub(crate) fn acquire<'a>(
    source: &'a Arc<HoldSource>,
    request: &'a Request,
) -> impl Future<Output = Result<Option<Arc<HoldOwner>>>> + Send + 'a {
    let context = &source.context;
    let acquisition = async move {
        let until = end_of(context, request.timeout);
        let last = LastFailure::default();
        // Pinned here, because a future that is passed by value would be stored twice for the whole wait.
        let entered = pin!(enter(source, request, (until, &last)));
        in_time(context, until, entered, || out_of_time(source, request, &last)).await
    };
    trace::acquiring(request.operation, &request.keys.name, request.fair, || context.now(), acquisition)
}

/// The error of a request whose timeout is over.
pub(crate) fn out_of_time(source: &HoldSource, request: &Request, last: &LastFailure) -> Error {
    let error = request.error(ErrorKind::TimedOut);
    match &source.quorum {
        None => timed_out(&source.context, (&request.keys, request.amount), error, last),
        Some(quorum) => match quorum.lack(&request.keys.name) {
            Some(reason) => error.with_reason(reason),
            None => error,
        },
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
) -> Result<Option<Arc<HoldOwner>>> {
    let mut vacant = None;
    if let Some(holder) = request.holder {
        match look(source, request, holder).await? {
            Entered::Held(owned) => return Ok(Some(owned)),
            Entered::Busy => return Ok(None),
            Entered::Vacant(found) => vacant = Some(found),
        }
    }
    let acquisition = Acquisition { source, request, until, last };
    let owned = match &source.quorum {
        None => own(&acquisition).await?,
        Some(quorum) => {
            let granted = quorum.clone().acquire(request, until).await?;
            granted.map(|QuorumGrant { hold, ends }| Arc::new(acquisition.owned(hold).of_quorum(ends)))
        }
    };
    if let (Some(owned), Some(vacant)) = (&owned, vacant) {
        vacant.fill(owned);
    }
    Ok(owned)
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

/// Acquires with one attempt id after the other: in the client's cohort, or alone.
///
/// What lives across its waits is in the future of each waiter, for hours: as little as possible.
pub(crate) async fn own(acquisition: &Acquisition<'_>) -> Result<Option<Arc<HoldOwner>>> {
    let Acquisition { source, request, until, last } = acquisition;
    let context = &source.context;
    let cohort = request.joins_cohort.then(|| CohortId::of(&request.keys, request.amount));
    let mut member = match &cohort {
        Some(cohort) => Some(Member::join(context, cohort, request).await?),
        None => None,
    };
    let mut expired = 0;
    loop {
        let (began, attempt);
        {
            let turn;
            (turn, began) = match &mut member {
                Some(member) => member.turn(request).await?,
                None => (Turn::Lead { since: None }, context.now()),
            };
            attempt = match turn {
                Turn::Lead { since } => open(context, request, member.as_ref(), (since, began))?,
                Turn::Attempt(handoff) => PendingAttempt::resume(context, handoff),
                Turn::Held { hold, budget } => {
                    if hold.loss(began).is_some() {
                        // The member looked at it too late: the drop cleans up, and the member asks the server.
                        drop(acquisition.owned(hold));
                        continue;
                    }
                    member.into_iter().for_each(Member::holds);
                    let mut owned = acquisition.owned(hold);
                    owned.in_cohort = cohort.map(|cohort| InCohort::new(cohort, budget));
                    return Ok(Some(Arc::new(owned)));
                }
            };
        }
        let (decision, since) = {
            let mut waiter = Waiter::new(context, attempt, *until, last);
            let decision = attempt::run(request, &mut waiter).await;
            (decision, waiter.attempt.state.since)
        };
        let failed = |error: &Error, since| member.iter().for_each(|member| member.fail(error, since));
        match decision.inspect_err(|error| failed(error, since))? {
            Decision::Held { hold, is_acknowledged } => {
                // In no cohort yet: a grant that is given up here is released, and not handed off.
                let mut owned = acquisition.owned(hold);
                if is_acknowledged {
                    context.engine.acknowledged(&owned.hold);
                } else {
                    // On the heap, as it is rare.
                    let (kept, is_confirmed) = Box::pin(confirmed(context, request, owned)).await;
                    owned = kept;
                    if !is_confirmed.inspect_err(|error| failed(error, None))? {
                        continue;
                    }
                }
                member.into_iter().for_each(Member::holds);
                owned.in_cohort = cohort.map(|cohort| InCohort::granted(context, cohort, &owned.hold));
                return Ok(Some(Arc::new(owned)));
            }
            Decision::Busy => return Ok(None),
            Decision::Unanswered(error, since) => {
                failed(&error, Some(since));
                return Err(error);
            }
            Decision::Again | Decision::LeftToCohort => {}
            Decision::GrantExpired if !request.wait => return Ok(None),
            Decision::GrantExpired => expired += 1,
        }
        if expired == MOST_EXPIRED {
            let reason = format!("the answers take longer than the lease of {:?}", request.lease);
            // Not shared: other members may have seen no more than the last of these grants.
            return Err(request.error_because(ErrorKind::Unavailable, reason));
        }
    }
}

async fn confirmed(context: &Context, request: &Request, owned: HoldOwner) -> (HoldOwner, Result<bool>) {
    let is_confirmed = confirm(context, request.operation, &owned.hold).await;
    (owned, is_confirmed)
}

fn open<'a>(
    context: &'a Context,
    request: &Request,
    member: Option<&Member<'_>>,
    (since, now): (Option<Instant>, Instant),
) -> Result<PendingAttempt<'a>> {
    let Request { keys, amount, lease, .. } = request;
    let opened = match member {
        Some(member) => member.open(request, now),
        None => context.engine.open(keys, *amount, *lease, now).map(|id| AttemptHandoff::new(id, *amount)),
    };
    let open = |handoff| PendingAttempt::resume(context, AttemptHandoff { since, ..handoff });
    opened.map(open).map_err(|Closed| request.error(ErrorKind::Closed))
}

#[cfg(test)]
mod tests;
