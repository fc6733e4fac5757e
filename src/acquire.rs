//! The one acquire loop: in the time there is, for a holder or in a cohort, one attempt after the other.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cohort::{First, Member};
use crate::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::holder::Holder;
use crate::mutant::{self, Mutant};
use crate::owned::Owned;
use crate::protocol::key::Keys;
use crate::reentry::{Entry, Reentry};
use crate::runtime::timeout;
use crate::trace;

mod attempt;
pub(crate) mod builder;
mod request;

use attempt::{Attempt, Decision};

/// So many grants of one acquisition that come too late to be used are not bad luck.
const MOST_LATE: u32 = 3;

/// What is asked for. Every value has been checked.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) operation: &'static str,
    pub(crate) keys: Arc<Keys>,
    /// Units, or tokens to reserve.
    pub(crate) amount: u32,
    /// Whether to wait while others hold it.
    pub(crate) wait: bool,
    pub(crate) lease: Duration,
    pub(crate) renewed: bool,
    /// Of a renewed lease: how long after the grant the hold ends.
    pub(crate) at_most: Option<Duration>,
    pub(crate) max_waiters: u32,
    pub(crate) timeout: Option<Duration>,
    pub(crate) holder: Option<(Holder, Arc<Reentry<Owned>>)>,
    /// As it was asked for.
    pub(crate) fair: bool,
    /// Whether it stands in the client's own cohort for the name.
    pub(crate) joins_cohort: bool,
}

impl Request {
    pub(crate) fn error(&self, kind: ErrorKind) -> Error {
        Error::new(kind, self.operation).with_name(&self.keys.name)
    }
}

/// Acquires within the request's timeout. `None`: the lock is taken, and the request does not wait; or it was for a
/// latch, which is open.
///
/// Dropping the future at any point leaves nothing: what Redis has or is about to have of it is cancelled in the
/// background.
pub(crate) async fn acquire(context: &Arc<Context>, request: &Request) -> Result<Option<Arc<Owned>>> {
    let Request { operation, keys, fair, .. } = request;
    trace::acquiring(operation, &keys.name, *fair, || context.now(), in_time(context, request)).await
}

async fn in_time(context: &Arc<Context>, request: &Request) -> Result<Option<Arc<Owned>>> {
    // Past any clock's range is no limit.
    let until = request.timeout.and_then(|limit| context.now().checked_add(limit));
    // Pinned here: handed over by value, it would be stored twice, for as long as somebody waits.
    let mut entered = pin!(enter(context, request, until));
    match request.timeout.filter(|_| until.is_some() && !mutant::on(Mutant::TimeoutIgnored)) {
        None => entered.await,
        Some(limit) => match timeout(&context.executor, limit, entered.as_mut()).await {
            Some(acquired) => acquired,
            None => Err(request.error(ErrorKind::TimedOut)),
        },
    }
}

/// Re-enters a hold of the request's holder, or acquires.
async fn enter(context: &Arc<Context>, request: &Request, until: Option<Instant>) -> Result<Option<Arc<Owned>>> {
    let Some((holder, reentry)) = &request.holder else {
        let owned = own(context, request, until, None).await?;
        return Ok(owned.map(Arc::new));
    };
    loop {
        let valid = |owned: &Owned| owned.hold.loss(context.now()).is_none() || mutant::on(Mutant::LostHoldEntered);
        match reentry.enter(*holder, &request.keys, valid) {
            // It would wait for itself.
            Entry::Held(owned) if owned.hold.amount < request.amount => {
                return Err(request.error(ErrorKind::WouldDeadlock));
            }
            Entry::Held(owned) => return Ok(Some(owned)),
            // Not now: what another task of the holder waits for, a try does not wait for.
            Entry::Acquiring(_) if !request.wait => return Ok(None),
            Entry::Acquiring(listener) => listener.await,
            Entry::Vacant(vacant) => {
                let holder = Some((*holder, reentry.clone()));
                let Some(owned) = own(context, request, until, holder).await? else { return Ok(None) };
                let owned = Arc::new(owned);
                vacant.fill(&owned);
                return Ok(Some(owned));
            }
        }
    }
}

/// Acquires for the holder, if there is one: in the client's cohort, or for itself. One attempt id after the other, until one
/// of them holds.
async fn own(
    context: &Arc<Context>,
    request: &Request,
    until: Option<Instant>,
    holder: Option<(Holder, Arc<Reentry<Owned>>)>,
) -> Result<Option<Owned>> {
    let mut member = request.joins_cohort.then(|| Member::join(context, request)).transpose()?;
    let mut retry = context.retry(request.operation, &request.keys.name);
    let mut late = 0;
    loop {
        let first = match &mut member {
            Some(member) => member.first(request).await?,
            None => First::Leads(None),
        };
        let handoff = match first {
            First::Leads(handoff) => handoff,
            First::Holds(hold) => {
                let lost = hold.loss(context.now()).is_some();
                let owned = Owned::new(context.clone(), hold, holder.clone());
                if lost {
                    // Nobody looked at it in time: the drop cleans up, and this one asks.
                    continue;
                }
                return Ok(Some(owned.in_cohort(member)));
            }
        };
        let began = context.now();
        let failed = |error: &Error| member.iter().for_each(|member| member.fail(error, began));
        let attempt = match handoff {
            Some(handoff) => Attempt::resume(context, request, until, handoff),
            None => Attempt::begin(context, request, until, member.as_ref())?,
        };
        match attempt.run(&mut retry).await.inspect_err(failed)? {
            Decision::Held(hold) => {
                if let Some(member) = &mut member {
                    member.holds(&hold);
                }
                return Ok(Some(Owned::new(context.clone(), hold, holder).in_cohort(member)));
            }
            Decision::Busy | Decision::Open => return Ok(None),
            Decision::Again | Decision::InCohort => {}
            Decision::Late if !request.wait => return Ok(None),
            Decision::Late => late += 1,
        }
        if late == MOST_LATE {
            let reason = format!("the answers take longer than the lease of {:?}", request.lease);
            let error = Error::because(ErrorKind::Unavailable, request.operation, reason);
            return Err(error.with_name(&request.keys.name)).inspect_err(failed);
        }
    }
}
