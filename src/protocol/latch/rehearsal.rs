//! The rehearsal of a latch, which issues every command that its scripts issue.

use super::copy::LatchCall;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::failure::Failure;
use crate::protocol::rehearsal::LEASE;
use crate::protocol::reply::ServerMillis;
use crate::protocol::resource::Rehearsal;

pub(super) async fn rehearse(rehearsal: Rehearsal<'_>) -> Result<ServerMillis, Failure> {
    let Rehearsal { scripts, keys, .. } = rehearsal;
    let [setter, waiter, other] = rehearsal.ids();
    let [_, ticket, _] = rehearsal.tickets(0);
    scripts.cancel(keys, ticket, false).await?;
    let now = forget(&rehearsal, setter).await?;
    let known_until = now + LEASE.as_secs() * 1000;
    scripts.set_latch(keys, copy(setter, known_until), 1, LEASE).await?;
    rehearsal.queue_up(ticket, LEASE, 0).await?;
    scripts.heartbeat(keys, &[(ticket, LEASE)]).await?;
    scripts.count_down_latch(keys, copy(other, 0)).await?;
    scripts.delete_latch(keys, copy(waiter, 0)).await?;
    // Outside of this rehearsal, remembered calls are left to expire.
    forget(&rehearsal, setter).await?;
    Ok(scripts.inspect_latch(keys).await?.now)
}

pub(super) async fn tidy(rehearsal: Rehearsal<'_>) {
    let [setter, ..] = rehearsal.ids();
    rehearsal.cancel_tickets(0).await;
    let _ = rehearsal.scripts.delete_latch(rehearsal.keys, copy(setter, 0)).await;
    let _ = forget(&rehearsal, setter).await;
}

fn copy(id: AttemptId, known_until: ServerMillis) -> LatchCall {
    LatchCall { id, not_after: 0, known_until, resent: false }
}

/// Makes the server forget a call.
async fn forget(rehearsal: &Rehearsal<'_>, id: AttemptId) -> Result<ServerMillis, Failure> {
    let Rehearsal { scripts, keys, .. } = *rehearsal;
    Ok(scripts.take_member(keys, keys.ending(":calls"), id).await?.now)
}
