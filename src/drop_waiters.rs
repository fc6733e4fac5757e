//! How operators take waiters out of a queue.

use crate::error::Result;
use crate::handle::Primitive;
use crate::protocol::dispatch::{DropArgs, Dropped};
use crate::revoke::Whose;

/// Drops the waiters, and returns how many.
pub(crate) async fn drop_waiters(primitive: &Primitive, whose: Whose) -> Result<u64> {
    const OPERATION: &str = "drop_waiters";
    let client = match whose {
        Whose::Everybody => None,
        Whose::Client(client) => Some(client),
    };
    let context = primitive.context();
    let (mut first, mut count) = (0, 0);
    // How many tickets of the queue, as the first call has found it, are still to be looked at. Those that queue up
    // again meanwhile stand behind them.
    let mut left = None;
    loop {
        // A late copy must not drop those that have queued up since.
        let dropped = primitive.ask_in_time(OPERATION, |scripts, keys, not_after| async move {
            Ok(match scripts.drop_waiters(keys, DropArgs { client, first, not_after }).await? {
                Dropped::Dropped { tickets, next_first, unseen, call_again, now } => {
                    (Some((tickets, next_first, unseen, call_again)), now)
                }
                Dropped::Stale { now } => (None, now),
            })
        });
        let (tickets, next_first, unseen, call_again) = dropped.await?;
        if call_again {
            context.engine.promote_later(primitive.keys(OPERATION)?, context.now(), context.config.lease);
        }
        count += tickets;
        let looked_at = tickets + next_first.saturating_sub(first);
        let still = left.map_or(unseen, |left: u64| left.saturating_sub(looked_at));
        if unseen == 0 || still == 0 {
            return Ok(count);
        }
        (first, left) = (next_first, Some(still));
    }
}
