//! How the upgradable reader becomes the writer.
//!
//! It holds more than half of all units, so nobody else can have all of them. Its ticket for the
//! rest goes before all others. Once the rest is granted, nobody else holds anything, and one more request makes both
//! holds one, with the token of a writer. The second hold alone excludes writers only: if the first one is lost in
//! between, the second one is released.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{Either, select};

use super::exchange::exchange;
use super::owner::{HoldOwner, lost_error};
use crate::acquire::enter::acquire;
use crate::acquire::request::Request;
use crate::acquire::wait::end_of;
use crate::engine::lease::Term;
use crate::error::{Error, ErrorKind, Result};
use crate::mutant::{self, Mutant};
use crate::protocol::limits::{UPGRADE, WRITE};

/// Returns the hold with all units; or as it was before, if the timeout has passed or it has other guards.
pub(crate) async fn upgrade(
    owned: Arc<HoldOwner>,
    operation: &'static str,
    timeout: Option<Duration>,
) -> Result<Arc<HoldOwner>> {
    let until = end_of(owned.context(), timeout);
    exchange(owned, async |mut alone| {
        let mut rest = None;
        loop {
            alone = Box::pin(alone.change(operation, WRITE, rest)).await?;
            if alone.hold.amount == WRITE {
                return Ok(alone);
            }
            if mutant::on(Mutant::UpgradeLetsGo) {
                let (source, request) = (alone.source().clone(), request(&alone, operation, WRITE, None));
                drop(alone);
                let anew = acquire(&source, &request).await?.and_then(Arc::into_inner);
                return anew.ok_or_else(|| Error::new(ErrorKind::Protocol, operation));
            }
            rest = the_rest(&alone, operation, until).await?.and_then(Arc::into_inner);
            if rest.is_none() {
                return Ok(alone);
            }
        }
    })
    .await
}

/// Acquires what the hold lacks. `None`: the time is over.
async fn the_rest(
    owned: &HoldOwner,
    operation: &'static str,
    until: Option<Instant>,
) -> Result<Option<Arc<HoldOwner>>> {
    let (context, hold) = (owned.context(), &owned.hold);
    let timeout = until.map(|until| until.saturating_duration_since(context.now()));
    if timeout.is_some_and(|timeout| timeout.is_zero()) {
        return Ok(None);
    }
    let request = request(owned, operation, UPGRADE, timeout);
    let acquired = pin!(acquire(owned.source(), &request));
    let lost = pin!(hold.lost());
    match select(acquired, lost).await {
        Either::Left((Ok(rest), _)) => rest.map(Some).ok_or_else(|| Error::new(ErrorKind::Protocol, operation)),
        Either::Left((Err(error), _)) if error.kind() == ErrorKind::TimedOut => Ok(None),
        Either::Left((Err(error), _)) => Err(error),
        Either::Right((loss, _)) => Err(lost_error(hold, operation, loss)),
    }
}

/// Asks for so many units of the name of the hold, without its holder.
fn request(owned: &HoldOwner, operation: &'static str, amount: u32, timeout: Option<Duration>) -> Request {
    let hold = &owned.hold;
    // A fixed lease would end during the wait. The replicas acknowledge the writer's hold, and not this one.
    let lease = if hold.term == Term::Fixed { owned.context().config.lease } else { hold.lease };
    let plain = Request::plain(operation, hold.keys.clone(), amount, lease);
    Request { timeout, ignores_holder: true, ..plain }
}
