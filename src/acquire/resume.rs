//! Taking over a hold that another program has left.

use crate::acquire::builder::TryAcquire;
use crate::error::{Error, ErrorKind, Result};
use crate::handle::Primitive;
use crate::hold::guard::Held;
use crate::hold::hold_handle::HoldHandle;

/// Takes over the hold of `units` units, or of as many as it has. Dropping the future releases the hold in the
/// background, if it was taken over.
pub(crate) async fn resume<G: Held>(
    primitive: &Primitive,
    operation: &'static str,
    handle: &HoldHandle,
    units: Option<u32>,
) -> Result<G> {
    let keys = primitive.keys(operation)?;
    let error = |kind, reason: &str| Error::because(kind, operation, reason).with_name(&keys.name);
    let left = handle.check((keys.kind, &keys.name), units).map_err(|why| error(ErrorKind::InvalidInput, why))?;
    let acquire = TryAcquire::<G>::of_left(primitive, operation, (left.id, left.units));
    let acquire = if left.is_fixed { acquire.expires_after(left.lease) } else { acquire.lease(left.lease) };
    let ended = || error(ErrorKind::Lost, "the hold has ended, or it was resumed already");
    acquire.acquired().await?.ok_or_else(ended)
}
