//! The rehearsal of a lock, which issues every command that its scripts issue.

use crate::protocol::failure::Failure;
use crate::protocol::reply::ServerMillis;
use crate::protocol::resource::Rehearsal;

pub(super) async fn rehearse(rehearsal: Rehearsal<'_>) -> Result<ServerMillis, Failure> {
    let Rehearsal { scripts, keys, .. } = rehearsal;
    rehearsal.queue(1).await?;
    let [holder, ..] = rehearsal.tickets(1);
    // Counts the subscribers and publishes to the inbox. Only here is it an error if the user lacks these rights:
    // elsewhere a waiter that cannot be notified is skipped.
    rehearsal.try_acquire(holder).await?;
    scripts.force_release_lock(keys, &holder.id.text()).await?;
    Ok(scripts.inspect_lock(keys).await?.now)
}
