//! An acquisition, from its request to its hold.
//!
//! Each of four functions calls the next one. [`enter::acquire`] limits the time. `enter` looks for a hold that the
//! same holder can re-enter. [`own`] makes *attempts*, one after the other, until one of them is a hold.
//! [`attempt::run`] follows one attempt. For a `RedLock`, `red_lock::acquire` stands in the place of `own`.
//!
//! Each attempt has an id that is used once. The engine opens the id before the first request is sent, because the
//! message of the grant can overtake the answer.
//!
//! | the attempt | what is sent | becomes, on |
//! |---|---|---|
//! | asks | `acquire` with its id, again after a failure until the retry timeout is over ([`ask`]) | held on "granted"; queued on "queued"; over on "busy", "full" or "over the limit" |
//! | is queued | nothing; the watchdog sends heartbeats ([`wait`]) | granted, gone or failed, by a message or the answer to a heartbeat |
//! | is granted | nothing | held; asks again if the message cannot be trusted (below) |
//! | is gone | nothing | over. `own` makes the next attempt |
//! | has failed: no usable answer for the retry timeout | nothing | over, with the error |
//! | is held | nothing, or a renewal that waits for replicas, by the watchdog (`confirm`) | the caller's; over if it is lost before the replicas have acknowledged it, and `own` makes the next attempt |
//!
//! A non-fair acquisition is a [`Member`] of its client's cohort and waits for its turn before each attempt. The
//! [`Turn`] is to make a new attempt, to continue one that has lost its member, or to take over a hold without a
//! request. If it comes with a former hold, the first request is `requeue`: one script releases the hold and queues up.
//! A ticket that is queued belongs to the cohort. Its member waits for the next turn, and the outcome of the ticket is
//! the turn of the member that has then waited longest.
//!
//! # What a dropped future leaves
//! The future can be dropped at any await, and a timeout drops it. Each part cleans up by its own drop:
//! - a [`Member`] leaves the cohort, and a turn that it has not looked at goes to the next member;
//! - a [`PendingAttempt`] goes to the next member, which continues it with the same id. Without such a member, the
//!   watchdog cancels the id until the server has answered, or the lease is over;
//! - a [`HoldOwner`] without a guard releases its hold in the background;
//! - a [`Vacant`] slot of the holder goes to another task that waits for it.
//!
//! A request that was sent may still be executed. From `not_after` on, when no future waits for the answer, the server
//! refuses an `acquire`. A late `requeue` finds that the former hold was cancelled, and queues nothing. What was
//! written before is removed by the cancel, or expires.
//!
//! # Why it is correct
//! - An attempt is granted once. A script looks for the id before it acts, so a second copy of the request finds the
//!   hold or the ticket of the first. The engine decides each id once, and ignores what it hears of the id later.
//! - A lease ends in the client before it ends in Redis. It counts from before the answered request was sent, on the
//!   monotonic clock, and less the drift of the clocks. If a message grants it, it counts from the last request that
//!   was answered with "queued" or "waiting", or from the beginning of the attempt. The grant cannot be older.
//! - A message of a grant is trusted if one request was sent and half of the lease is left. After a second request, the
//!   message may be about a grant that has expired since, and the second copy may have queued up anew. So the attempt
//!   asks again: the answer tells what is true now, and a hold begins its lease anew.
//! - A grant that has expired when it becomes known is given up. After [`MOST_EXPIRED`] of them the acquisition fails,
//!   and a try ends with `None` after the first.
//! - No one waits for an event that cannot happen. Heartbeats find out what a lost message has said. A cohort without
//!   any attempt, ticket or hold that could bring a turn lets its oldest member ask.
//! - A closed client sends no request: closing has cancelled all ids, and a later request would acquire for no one.

use std::sync::Arc;
use std::time::Instant;

use crate::acquire::attempt::Decision;
use crate::acquire::confirm::confirm;
use crate::acquire::member::{InCohort, Member};
use crate::acquire::pending::PendingAttempt;
use crate::acquire::request::Request;
use crate::acquire::wait::{LastFailure, Waiter, timed_out};
use crate::cohort::id::CohortId;
use crate::context::Context;
use crate::engine::lease::Hold;
use crate::engine::turn::{AttemptHandoff, Closed, Turn};
use crate::error::{Error, ErrorKind, Result};
use crate::hold::owner::{HoldOwner, HoldSource};
use crate::observe::meter::Metered;
use crate::protocol::kind::Kind;
use crate::tuning::MOST_EXPIRED;

pub(crate) mod announced;
mod ask;
mod attempt;
mod blocked;
pub(crate) mod builder;
pub(crate) mod confirm;
pub(crate) mod enter;
pub(crate) mod force_after;
pub(crate) mod member;
pub(crate) mod news;
pub(crate) mod pending;
pub(crate) mod request;
pub(crate) mod resume;
pub(crate) mod ticket_only;
pub(crate) mod wait;
mod woken;

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

    /// What the caller gets. From here on, its hold is measured.
    fn granted(&self, owned: HoldOwner) -> Owned {
        let hold = &owned.hold;
        // The turn of a `RedLock` and the rest that an upgrade acquires are no holds of the caller's.
        let is_own = hold.keys.kind != Kind::Turn && !hold.keys.kind.claim(hold.amount).goes_first();
        let metered = || Metered::held(self.source.context.observed(self.request.operation, &hold.keys));
        let metered = is_own.then(metered);
        Owned::Held(Arc::new(owned.metered(metered)))
    }
}

/// The error of a request whose timeout is over.
pub(crate) fn out_of_time(source: &HoldSource, request: &Request, last: &LastFailure) -> Error {
    let error = request.error(ErrorKind::TimedOut);
    let error = match last.blocked() {
        Some(blocked) => error.with_reason(blocked),
        None => error,
    };
    match &source.quorum {
        None => timed_out(&source.context, (&request.keys, request.amount), error, last),
        Some(quorum) => match quorum.lack(&request.keys.name) {
            Some(reason) => error.with_reason(reason),
            None => error,
        },
    }
}

/// The outcome of an acquisition. Only a request that does not wait ends without a hold.
pub(crate) enum Owned {
    Held(Arc<HoldOwner>),
    Busy,
    /// Busy, but the client of the hold in the way releases it for one that waits, unless it uses it.
    Retained,
}

impl Owned {
    pub(crate) fn held(self) -> Option<Arc<HoldOwner>> {
        if let Self::Held(owned) = self { Some(owned) } else { None }
    }
}

/// Acquires with one attempt id after the other: in the client's cohort, or alone.
///
/// What lives across its waits is in the future of each waiter, for hours: as little as possible.
pub(crate) async fn own(acquisition: &Acquisition<'_>) -> Result<Owned> {
    let Acquisition { source, request, until, last } = acquisition;
    let context = &source.context;
    let cohort = request.joins_cohort.then(|| CohortId::of(&request.keys, request.amount));
    let mut member = None;
    if let Some(cohort) = &cohort {
        member = Member::join(context, cohort, request).await?;
        if member.is_none() {
            return Ok(Owned::Busy);
        }
    }
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
                Turn::Attempt(handoff) => PendingAttempt::resume(&**context, handoff),
                Turn::Held { hold, budget, .. } => {
                    if hold.loss(began).is_some() {
                        // The member looked at it too late: the drop cleans up, and the member asks the server.
                        drop(acquisition.owned(hold));
                        continue;
                    }
                    member.into_iter().for_each(Member::holds);
                    let mut owned = acquisition.owned(hold);
                    owned.in_cohort = cohort.map(|cohort| InCohort::new(cohort, budget, request));
                    return Ok(acquisition.granted(owned));
                }
            };
        }
        let (decision, since) = {
            let mut waiter = Waiter::new(context, attempt, *until, last);
            let decision = attempt::run(request, &mut waiter).await;
            (decision, waiter.attempt.state.since)
        };
        if let (Ok(Decision::Unanswered(error, since)), Some(member)) = (&decision, &mut member)
            && member.outlives(error, *since)
        {
            continue;
        }
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
                owned.in_cohort = cohort.map(|cohort| InCohort::granted(context, cohort, &owned.hold, request));
                return Ok(acquisition.granted(owned));
            }
            Decision::Busy { is_retained: false } => return Ok(Owned::Busy),
            Decision::Busy { is_retained: true } => return Ok(Owned::Retained),
            Decision::Unanswered(error, since) => {
                failed(&error, Some(since));
                return Err(error);
            }
            Decision::Again | Decision::LeftToCohort => {}
            Decision::GrantExpired if !request.wait => return Ok(Owned::Busy),
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
) -> Result<PendingAttempt<&'a Context>> {
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
