//! How operators take waiters out of a queue.

use crate::error::Result;
use crate::handle::Primitive;
use crate::protocol::dispatch::DropArgs;
use crate::revoke::Whose;

/// Drops the waiters, and returns how many.
pub(crate) async fn drop_waiters(primitive: &Primitive, whose: Whose) -> Result<u64> {
    const OPERATION: &str = "drop_waiters";
    let (context, client) = (primitive.context(), whose.client());
    let (mut first, mut count) = (0, 0);
    // How many tickets of the queue, as the first call has found it, are still to be looked at. Those that queue up
    // again meanwhile stand behind them.
    let mut left = None;
    loop {
        // A late copy must not drop those that have queued up since.
        let dropped = primitive.ask_in_time(OPERATION, |scripts, keys, not_after| {
            scripts.drop_waiters(keys, DropArgs { client, first, not_after })
        });
        let dropped = dropped.await?;
        if dropped.call_again {
            context.promote_later(primitive.keys(OPERATION)?);
        }
        count += dropped.tickets;
        let looked_at = dropped.tickets + dropped.next_first.saturating_sub(first);
        let still = left.map_or(dropped.unseen, |left: u64| left.saturating_sub(looked_at));
        if dropped.unseen == 0 || still == 0 {
            return Ok(count);
        }
        (first, left) = (dropped.next_first, Some(still));
    }
}
