//! Every command that the lock's scripts issue.

use crate::protocol::failure::Failure;
use crate::protocol::reply::ServerMillis;
use crate::protocol::resource::Rehearsal;

pub(super) async fn rehearse(rehearsal: Rehearsal<'_>) -> Result<ServerMillis, Failure> {
    let Rehearsal { scripts, keys, .. } = rehearsal;
    rehearsal.queue(1).await?;
    let [holder, ..] = rehearsal.tickets(1);
    // Asks whether a client listens, and tells it; a refusal of either is an error here only: elsewhere a waiter that cannot
    // be told is passed over.
    rehearsal.try_acquire(holder).await?;
    scripts.force_release_lock(keys, &holder.id.text()).await?;
    Ok(scripts.inspect_lock(keys).await?.now)
}
