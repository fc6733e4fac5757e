//! The rehearsal of semaphores and read-write locks, which issues every command that their scripts issue, but for one:
//! only after a lease is over do they issue `ZRANGEBYSCORE`, which the rehearsal of latches issues. An operator's limit
//! is not stored, because it would stay for longer.

use crate::protocol::failure::Failure;
use crate::protocol::limits::{READ, WRITE};
use crate::protocol::permits::ChangeArgs;
use crate::protocol::rehearsal::LEASE;
use crate::protocol::reply::ServerMillis;
use crate::protocol::resource::Rehearsal;

pub(super) async fn rehearse(rehearsal: Rehearsal<'_>) -> Result<ServerMillis, Failure> {
    let Rehearsal { scripts, keys, .. } = rehearsal;
    rehearsal.queue(WRITE).await?;
    let [writer, ..] = rehearsal.tickets(WRITE);
    let [other_reader, reader, _] = rehearsal.tickets(READ);
    rehearsal.try_acquire(writer).await?;
    let change = ChangeArgs { old: writer.id, new: reader.id, units: READ, lease: LEASE, not_after: 0 };
    scripts.change(keys, WRITE, change).await?;
    // One of two leases is lost. This is the only case in which a script reads all holds.
    rehearsal.try_acquire(other_reader).await?;
    scripts.take_member(keys, keys.ending(":leases"), writer.id).await?;
    rehearsal.try_acquire(reader).await?;
    scripts.release(keys, reader.id).await?;
    Ok(scripts.inspect(keys, WRITE).await?.now)
}
