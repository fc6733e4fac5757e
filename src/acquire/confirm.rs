//! Waiting until replicas have acknowledged a grant.

use std::sync::Arc;

use crate::context::Context;
use crate::engine::confirmations::Confirmation;
use crate::engine::lease::Hold;
use crate::error::{Error, ErrorKind, Result};

/// Waits until as many replicas as the hold needs have acknowledged it. `false`: the server no longer has the hold.
///
/// Dropping the future ends the wait and leaves the hold as it is: its owner releases it.
pub(crate) async fn confirm(context: &Context, operation: &'static str, hold: &Arc<Hold>) -> Result<bool> {
    if hold.replicas == 0 {
        return Ok(true);
    }
    let error = |reason| Error::because(ErrorKind::Unacknowledged, operation, reason).with_name(&hold.keys.name);
    let until = context.now() + context.config.retry_timeout;
    let mut retry = context.retry(operation, &hold.keys.name);
    loop {
        match context.engine.confirm(hold).done().await {
            Confirmation::Acknowledged => return Ok(true),
            Confirmation::Gone => return Ok(false),
            Confirmation::TooFew(replicas) if context.now() >= until || hold.loss(context.now()).is_some() => {
                return Err(error(format!("{replicas} of {} replicas acknowledged the grant", hold.replicas)));
            }
            // The wait for the replicas was the pause.
            Confirmation::TooFew(_) => {}
            Confirmation::Failed(failure) => retry.again_after(failure).await?,
        }
    }
}
