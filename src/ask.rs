//! How a program asks others to release what they hold.

use crate::error::Result;
use crate::handle::Primitive;
use crate::revoke::Whose;
use crate::tuning::BATCH;

/// Asks those who hold now, and returns how many.
pub(crate) async fn ask_to_release(primitive: &Primitive, whose: Whose) -> Result<u64> {
    const OPERATION: &str = "ask_to_release";
    let client = primitive.context().client;
    let mut holders = primitive.ask(OPERATION, |scripts, keys| scripts.holders(keys, client)).await?;
    holders.retain(|id| whose.means(Some(id.client)));
    for ids in holders.chunks(BATCH) {
        let now = primitive.ask(OPERATION, |scripts, keys| scripts.ask_to_release(keys, ids)).await?;
        primitive.context().observe(now);
    }
    Ok(u64::try_from(holders.len()).unwrap_or(u64::MAX))
}
