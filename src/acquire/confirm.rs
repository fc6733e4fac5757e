//! Waiting until replicas have acknowledged a grant.

use std::sync::Arc;

use crate::context::Context;
use crate::engine::confirmations::Confirmation;
use crate::engine::lease::{Hold, Loss};
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::timeout;

/// Waits until as many replicas as the hold needs have acknowledged it. `false`: the hold is lost, and another attempt
/// may succeed.
///
/// Dropping the future ends the wait and leaves the hold as it is: its owner releases it.
pub(crate) async fn confirm(context: &Context, operation: &'static str, hold: &Arc<Hold>) -> Result<bool> {
    if hold.replicas == 0 {
        return Ok(true);
    }
    // On the heap, because the future may wait for hours and only such holds need this state.
    Box::pin(acknowledged(context, operation, hold)).await
}

async fn acknowledged(context: &Context, operation: &'static str, hold: &Arc<Hold>) -> Result<bool> {
    // The time for one `WAIT` is allowed even if `retry_timeout` is shorter.
    let until = context.now() + context.config.retry_timeout.max(context.config.command_timeout);
    let mut retry = context.retry(operation, &hold.keys);
    let mut replicas = 0;
    loop {
        let began = context.now();
        // The wait ends with the lease at the latest, because nothing renews the lease yet.
        let end = hold.deadline().map_or(began, |deadline| deadline.min(until));
        let confirming = context.engine.confirm(hold).done();
        let confirmation = timeout(&context.executor, end.saturating_duration_since(began), confirming).await;
        let now = context.now();
        // A sleep that returns before its end means that the runtime was shut down.
        let shut_down = confirmation.is_none() && now < end;
        let loss = hold.loss(now);
        if shut_down || loss == Some(Loss::Closed) || confirmation == Some(Confirmation::Closed) {
            return Err(context.closed(operation, &hold.keys));
        }
        match (confirmation, loss) {
            (Some(Confirmation::Acknowledged), None) => {
                context.engine.acknowledged(hold);
                return Ok(true);
            }
            (Some(Confirmation::Gone), _) | (_, Some(Loss::Gone | Loss::Revoked | Loss::Closed)) => return Ok(false),
            (Some(Confirmation::Failed(_)), Some(Loss::Expired)) => return Ok(false),
            (Some(Confirmation::Failed(failure)), None) => {
                retry.again_after(failure).await?;
                continue;
            }
            (Some(Confirmation::TooFew(few)), _) => replicas = few,
            (Some(Confirmation::Acknowledged | Confirmation::Closed) | None, _) => {}
        }
        if now >= until || loss.is_some() {
            let reason = format!("{replicas} of {} replicas acknowledged the grant", hold.replicas);
            return Err(Error::because(ErrorKind::Unacknowledged, operation, reason).with_name(&hold.keys.name));
        }
        // No pause is needed: waiting for the replicas took long enough.
    }
}
