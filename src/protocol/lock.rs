//! The lock's scripts as typed calls: who passes which key and argument in which place is decided here only.

use std::time::Duration;

use crate::connection::{Arg, Connection, Reply};
use crate::protocol::call::{AcquireArgs, Failure, TicketArgs, counts_everyone, from, millis, mode, run, run_within};
use crate::protocol::reply::lock::{ForceReleased, Inspected, force_released, inspected};
use crate::protocol::reply::{self, Acquired, Cancelled, HeartbeatReply, Released, Renewed, Requeued};
use crate::protocol::{
    LOCK_ACQUIRE, LOCK_CANCEL, LOCK_FORCE_RELEASE, LOCK_HEARTBEAT, LOCK_INSPECT, LOCK_RELEASE, LOCK_RENEW,
};

/// A connection, and the arguments that are the same in every call a client makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LockScripts<'a> {
    pub(crate) connection: &'a dyn Connection,
    pub(crate) inbox_prefix: &'a str,
}

/// One hold to renew: key, attempt id, lease. A lease of zero looks without renewing.
pub(crate) type RenewArgs<'a> = (&'a str, &'a str, Duration);

impl LockScripts<'_> {
    pub(crate) async fn acquire(&self, keys: [&str; 4], args: AcquireArgs<'_>) -> Result<Acquired, Failure> {
        let args = [
            Arg::Text(args.attempt_id),
            mode(args.wait),
            millis(args.lease),
            Arg::Number(args.amount.into()),
            millis(args.ticket_ttl),
            Arg::Number(args.max_waiters.into()),
            Arg::Number(args.not_after),
            Arg::Text(self.inbox_prefix),
            counts_everyone(self.connection),
        ];
        let reply = run(self.connection, &LOCK_ACQUIRE, &keys, &args).await?;
        Ok(reply::acquired(&LOCK_ACQUIRE, &reply)?)
    }

    pub(crate) async fn release(&self, keys: [&str; 4], attempt_id: &str) -> Result<Released, Failure> {
        let reply = self.release_for(keys, attempt_id, ("", Duration::ZERO)).await?;
        Ok(reply::released(&LOCK_RELEASE, &reply)?)
    }

    /// Releases, and queues up that ticket.
    pub(crate) async fn requeue(
        &self,
        keys: [&str; 4],
        attempt_id: &str,
        ticket: TicketArgs<'_>,
    ) -> Result<Requeued, Failure> {
        let reply = self.release_for(keys, attempt_id, ticket).await?;
        Ok(reply::requeued(&LOCK_RELEASE, &reply)?)
    }

    async fn release_for(&self, keys: [&str; 4], attempt_id: &str, ticket: TicketArgs<'_>) -> Result<Reply, Failure> {
        let args = [
            Arg::Text(attempt_id),
            Arg::Text(self.inbox_prefix),
            counts_everyone(self.connection),
            Arg::Text(ticket.0),
            millis(ticket.1),
            Arg::Number(1),
        ];
        Ok(run(self.connection, &LOCK_RELEASE, &keys, &args).await?)
    }

    pub(crate) async fn cancel(&self, keys: [&str; 4], ticket: &str, from_tail: bool) -> Result<Cancelled, Failure> {
        let args = [Arg::Text(ticket), from(from_tail), Arg::Text(self.inbox_prefix), counts_everyone(self.connection)];
        let reply = run(self.connection, &LOCK_CANCEL, &keys, &args).await?;
        Ok(reply::cancelled(&LOCK_CANCEL, &reply)?)
    }

    pub(crate) async fn heartbeat(
        &self,
        keys: [&str; 4],
        tickets: &[TicketArgs<'_>],
    ) -> Result<HeartbeatReply, Failure> {
        let mut args = vec![Arg::Text(self.inbox_prefix), counts_everyone(self.connection)];
        args.extend(tickets.iter().flat_map(|(ticket, ttl)| [Arg::Text(ticket), millis(*ttl)]));
        let reply = run(self.connection, &LOCK_HEARTBEAT, &keys, &args).await?;
        Ok(reply::heartbeat_reply(&LOCK_HEARTBEAT, &reply, tickets.len())?)
    }

    pub(crate) async fn renew(&self, holds: &[RenewArgs<'_>], within: Duration) -> Result<Renewed, Failure> {
        let keys: Vec<&str> = holds.iter().map(|(key, ..)| *key).collect();
        let args: Vec<Arg<'_>> =
            holds.iter().flat_map(|(_, attempt_id, lease)| [Arg::Text(attempt_id), millis(*lease)]).collect();
        let reply = run_within(self.connection, &LOCK_RENEW, &keys, &args, within).await?;
        Ok(reply::renewed(&LOCK_RENEW, &reply, holds.len())?)
    }

    pub(crate) async fn force_release(&self, keys: [&str; 4], attempt_id: &str) -> Result<ForceReleased, Failure> {
        let args = [Arg::Text(attempt_id), Arg::Text(self.inbox_prefix), counts_everyone(self.connection)];
        let reply = run(self.connection, &LOCK_FORCE_RELEASE, &keys, &args).await?;
        Ok(force_released(&LOCK_FORCE_RELEASE, &reply)?)
    }

    pub(crate) async fn inspect(&self, keys: [&str; 4]) -> Result<Inspected, Failure> {
        let reply = run(self.connection, &LOCK_INSPECT, &keys, &[]).await?;
        Ok(inspected(&LOCK_INSPECT, &reply)?)
    }
}
