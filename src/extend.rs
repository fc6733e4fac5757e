//! Extending a fixed lease.

use std::time::Duration;

use crate::config::check_lease;
use crate::engine::lease::{Loss, Term};
use crate::engine::schedule::answer_within;
use crate::error::{Error, ErrorKind, Result};
use crate::owned::{Owned, lost_error};
use crate::protocol::reply::HoldState;

const OPERATION: &str = "extend";

/// Asks the server until it has answered, or the hold is lost. If the future is dropped, the hold may last longer in Redis than its
/// guard counts; the release of the guard, or its expiry, ends the hold there, too.
pub(crate) async fn extend(owned: &Owned, lease: Duration) -> Result<()> {
    let Owned { context, hold, .. } = owned;
    let named = |error: Error| error.with_name(&hold.keys.name);
    check_lease(OPERATION, lease).map_err(named)?;
    if hold.term != Term::Fixed {
        let reason = "the lease is renewed; only a hold of expires_after is extended";
        return Err(named(Error::because(ErrorKind::InvalidInput, OPERATION, reason)));
    }
    let mut retry = context.retry(OPERATION, &hold.keys.name);
    let until = context.now() + context.config.retry_timeout;
    loop {
        let sent = context.now();
        if let Some(loss) = hold.loss(sent) {
            return Err(lost_error(hold, OPERATION, loss));
        }
        let within = answer_within(hold.remaining(sent), context.config.command_timeout);
        // Recorded first: if no answer comes, a later clean-up tries for as long.
        hold.asks_for(lease);
        let holds = [(&*hold.keys, hold.id, lease)];
        let renewed = match hold.replicas {
            0 => context.scripts().renew(&holds, within).await,
            replicas => context.scripts().renew_acknowledged(&holds, replicas, within).await,
        };
        match renewed {
            Ok(renewed) => {
                context.observe(renewed.now);
                if let Some(HoldState::Unacknowledged(replicas)) = renewed.holds.first() {
                    if context.now() < until {
                        continue;
                    }
                    let reason = format!("{replicas} of {} replicas acknowledged the extension", hold.replicas);
                    return Err(named(Error::because(ErrorKind::Unacknowledged, OPERATION, reason)));
                }
                let held = renewed.holds.first() == Some(&HoldState::Held);
                let lost = if held {
                    context.engine.extended(hold, lease, sent, context.now())
                } else {
                    context.engine.renewed(sent, context.now(), &[], std::slice::from_ref(hold));
                    Some(hold.loss(context.now()).unwrap_or(Loss::Gone))
                };
                return lost.map_or(Ok(()), |loss| Err(lost_error(hold, OPERATION, loss)));
            }
            Err(failure) => retry.again_after(failure).await?,
        }
    }
}
