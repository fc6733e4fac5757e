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
    let (mut first, mut count, mut promotes) = (0, 0, false);
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
        (first, count) = (next_first, count + tickets);
        promotes |= call_again;
        if unseen == 0 {
            break;
        }
    }
    if promotes {
        let context = primitive.context();
        context.engine.promote_later(primitive.keys(OPERATION)?, context.now(), context.config.lease);
    }
    Ok(count)
}
