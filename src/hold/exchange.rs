//! A hold that becomes another one, in the hands of its only guard.

use std::sync::Arc;

use super::owner::HoldOwner;
use crate::error::Result;
use crate::tuning::{LOOKED_AT, LOOKS};

/// Changes the hold to one of so many units, or of as many as before if they are not free. A hold that has other guards
/// stays as it is.
pub(crate) async fn change(owned: Arc<HoldOwner>, operation: &'static str, units: u32) -> Result<Arc<HoldOwner>> {
    exchange(owned, async |alone| alone.change(operation, units, None).await).await
}

/// Other tasks of the holder wait from here on until they can enter what the hold has become.
pub(super) async fn exchange(
    owned: Arc<HoldOwner>,
    change: impl AsyncFnOnce(HoldOwner) -> Result<HoldOwner>,
) -> Result<Arc<HoldOwner>> {
    let (source, keys) = (owned.source().clone(), owned.hold.keys.clone());
    let vacant = owned.holder().map(|holder| source.reentry.reopen(holder, &keys));
    let owned = match alone(owned).await {
        Ok(alone) => Arc::new(Box::pin(change(alone)).await?),
        Err(shared) => shared,
    };
    if let Some(vacant) = vacant {
        vacant.fill(&owned);
    }
    Ok(owned)
}

/// The hold, unless it has other guards. A task of the holder that has just found that it cannot enter the hold may
/// still have a reference to it.
async fn alone(mut owned: Arc<HoldOwner>) -> Result<HoldOwner, Arc<HoldOwner>> {
    let executor = owned.context().executor.clone();
    for _ in 0..LOOKED_AT {
        match Arc::try_unwrap(owned) {
            Ok(alone) => return Ok(alone),
            Err(shared) if shared.has_other_guards() => return Err(shared),
            Err(looked_at) => owned = looked_at,
        }
        executor.sleep(LOOKS).await;
    }
    Err(owned)
}
