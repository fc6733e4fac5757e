//! Extending a fixed lease.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use crate::config::check_lease;
use crate::context::Context;
use crate::engine::lease::{Hold, Loss, Term, answer_within};
use crate::error::{Error, ErrorKind, Result};
use crate::hold::owner::{HoldOwner, check_not_lost, lost_error};
use crate::protocol::dispatch::Failure;
use crate::protocol::renewed::HoldState;

const OPERATION: &str = "extend";

/// Extends the fixed lease of a hold, also that of a `RedLock`. If the future is dropped, the hold may last longer in
/// Redis than its guard counts. It still ends there when the guard is released or the lease expires.
pub(crate) async fn extend(owned: &HoldOwner, lease: Duration) -> Result<()> {
    let (context, hold) = (owned.context(), &owned.hold);
    let named = |error: Error| error.with_name(&hold.keys.name);
    check_lease(OPERATION, lease).map_err(named)?;
    if hold.term != Term::Fixed {
        let reason = "the lease is renewed; only a hold of expires_after is extended";
        return Err(named(Error::because(ErrorKind::InvalidInput, OPERATION, reason)));
    }
    if let Some(quorum) = owned.quorum() {
        return quorum.extend(lease).await;
    }
    extend_alone(context, hold, lease).await
}

/// Repeats the request until the server has answered or the hold is lost.
pub(crate) async fn extend_alone(context: &Context, hold: &Arc<Hold>, lease: Duration) -> Result<()> {
    let named = |error: Error| error.with_name(&hold.keys.name);
    let unacknowledged = |replicas: u32| {
        let reason = format!("{replicas} of {} replicas acknowledged the extension", hold.replicas);
        named(Error::because(ErrorKind::Unacknowledged, OPERATION, reason))
    };
    let (mut retry, mut few) = (context.retry(OPERATION, &hold.keys), None);
    loop {
        let sent = retry.sends();
        check_not_lost(hold, OPERATION, sent)?;
        let within = answer_within(hold.remaining(sent), context.config.command_timeout);
        // Recorded before the request is sent. If no answer comes, a later clean-up knows for how long the hold may be
        // in Redis.
        hold.asks_for(lease);
        let holds = [hold.renewal_args(lease)];
        // The server waits for replicas no longer than the caller does.
        let of_replicas = retry.limit(sent).map_or(within, |limit| within.min(limit));
        let call = pin!(async {
            match hold.replicas {
                0 => context.scripts().renew(&holds, within).await,
                replicas => context.scripts().renew_acknowledged(&holds, replicas, of_replicas).await,
            }
        });
        match retry.bounded(sent, call).await {
            Ok(renewed) => {
                context.observe(renewed.now);
                if !renewed.in_full.is_empty() {
                    // The next request names all keys.
                    continue;
                }
                let state = renewed.holds.first().map(|state| hold.found(*state));
                if let Some(HoldState::Unacknowledged(replicas)) = state {
                    if !retry.is_over() {
                        few = Some(replicas);
                        continue;
                    }
                    return Err(unacknowledged(replicas));
                }
                let lost = if let Some(HoldState::Held(_)) = state {
                    context.engine.extended(hold, lease, sent, context.now())
                } else {
                    context.engine.renewed(sent, context.now(), &[], std::slice::from_ref(hold));
                    Some(hold.loss(context.now()).unwrap_or(Loss::Gone))
                };
                return lost.map_or(Ok(()), |loss| Err(lost_error(hold, OPERATION, loss)));
            }
            // The last wait for replicas had too little time for an answer.
            Err(Failure::Late(_)) if few.is_some() => return Err(unacknowledged(few.unwrap_or_default())),
            Err(failure) => retry.again_after(failure).await?,
        }
    }
}
