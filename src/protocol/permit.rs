//! The scripts of semaphores and read-write locks as typed calls.
//!
//! Keys are those of one name, in the order of the scripts' `KEYS`: permits, leases, queue, tickets, fence. `limit` is
//! the call site's; a read-write lock is one of [`WRITE`](crate::protocol::key::WRITE) units.

use std::time::Duration;

use crate::connection::{Arg, Connection, Reply};
use crate::protocol::call::{AcquireArgs, Failure, TicketArgs, counts_everyone, from, millis, mode, run, run_within};
use crate::protocol::reply::permit::{Changed, Limited, PermitsInspected, changed, limited, permits_inspected};
use crate::protocol::reply::{self, Acquired, Cancelled, HeartbeatReply, Released, Renewed, Requeued, ServerMillis};
use crate::protocol::{
    PERMIT_ACQUIRE, PERMIT_CANCEL, PERMIT_CHANGE, PERMIT_HEARTBEAT, PERMIT_INSPECT, PERMIT_LIMIT, PERMIT_RELEASE,
    PERMIT_RENEW,
};

/// A connection, and the arguments that are the same in every call a client makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PermitScripts<'a> {
    pub(crate) connection: &'a dyn Connection,
    pub(crate) inbox_prefix: &'a str,
}

/// What `permit_change` is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChangeArgs<'a> {
    pub(crate) old_id: &'a str,
    pub(crate) new_id: &'a str,
    pub(crate) units: u32,
    pub(crate) lease: Duration,
    pub(crate) limit: u32,
    pub(crate) not_after: ServerMillis,
}

/// One hold to renew: its keys permits and leases, attempt id, lease. A lease of zero looks without renewing.
pub(crate) type PermitRenewArgs<'a> = ([&'a str; 2], &'a str, Duration);

impl PermitScripts<'_> {
    pub(crate) async fn acquire(
        &self,
        keys: [&str; 5],
        args: AcquireArgs<'_>,
        limit: u32,
    ) -> Result<Acquired, Failure> {
        let args = [
            Arg::Text(args.attempt_id),
            mode(args.wait),
            millis(args.lease),
            Arg::Number(args.amount.into()),
            Arg::Number(limit.into()),
            millis(args.ticket_ttl),
            Arg::Number(args.max_waiters.into()),
            Arg::Number(args.not_after),
            Arg::Text(self.inbox_prefix),
            counts_everyone(self.connection),
        ];
        let reply = run(self.connection, &PERMIT_ACQUIRE, &keys, &args).await?;
        Ok(reply::acquired(&PERMIT_ACQUIRE, &reply)?)
    }

    pub(crate) async fn release(&self, keys: [&str; 5], attempt_id: &str, limit: u32) -> Result<Released, Failure> {
        let reply = self.release_for(keys, attempt_id, limit, ("", Duration::ZERO)).await?;
        Ok(reply::released(&PERMIT_RELEASE, &reply)?)
    }

    /// Releases, and queues up that ticket.
    pub(crate) async fn requeue(
        &self,
        keys: [&str; 5],
        attempt_id: &str,
        limit: u32,
        ticket: TicketArgs<'_>,
    ) -> Result<Requeued, Failure> {
        let reply = self.release_for(keys, attempt_id, limit, ticket).await?;
        Ok(reply::requeued(&PERMIT_RELEASE, &reply)?)
    }

    async fn release_for(
        &self,
        keys: [&str; 5],
        attempt_id: &str,
        limit: u32,
        ticket: TicketArgs<'_>,
    ) -> Result<Reply, Failure> {
        let [limit, prefix, counts] = self.site(limit);
        let args =
            [Arg::Text(attempt_id), limit, prefix, counts, Arg::Text(ticket.0), millis(ticket.1), Arg::Number(1)];
        Ok(run(self.connection, &PERMIT_RELEASE, &keys, &args).await?)
    }

    pub(crate) async fn cancel(
        &self,
        keys: [&str; 5],
        ticket: &str,
        from_tail: bool,
        limit: u32,
    ) -> Result<Cancelled, Failure> {
        let [limit, prefix, counts] = self.site(limit);
        let args = [Arg::Text(ticket), from(from_tail), limit, prefix, counts];
        let reply = run(self.connection, &PERMIT_CANCEL, &keys, &args).await?;
        Ok(reply::cancelled(&PERMIT_CANCEL, &reply)?)
    }

    pub(crate) async fn heartbeat(
        &self,
        keys: [&str; 5],
        tickets: &[TicketArgs<'_>],
        limit: u32,
    ) -> Result<HeartbeatReply, Failure> {
        let mut args = self.site(limit).to_vec();
        args.extend(tickets.iter().flat_map(|(ticket, ttl)| [Arg::Text(ticket), millis(*ttl)]));
        let reply = run(self.connection, &PERMIT_HEARTBEAT, &keys, &args).await?;
        Ok(reply::heartbeat_reply(&PERMIT_HEARTBEAT, &reply, tickets.len())?)
    }

    pub(crate) async fn renew(&self, holds: &[PermitRenewArgs<'_>], within: Duration) -> Result<Renewed, Failure> {
        let keys: Vec<&str> = holds.iter().flat_map(|(keys, ..)| *keys).collect();
        let args: Vec<Arg<'_>> =
            holds.iter().flat_map(|(_, attempt_id, lease)| [Arg::Text(attempt_id), millis(*lease)]).collect();
        let reply = run_within(self.connection, &PERMIT_RENEW, &keys, &args, within).await?;
        Ok(reply::renewed(&PERMIT_RENEW, &reply, holds.len())?)
    }

    pub(crate) async fn change(&self, keys: [&str; 5], args: ChangeArgs<'_>) -> Result<Changed, Failure> {
        let [limit, prefix, counts] = self.site(args.limit);
        let args = [
            Arg::Text(args.old_id),
            Arg::Text(args.new_id),
            Arg::Number(args.units.into()),
            millis(args.lease),
            limit,
            Arg::Number(args.not_after),
            prefix,
            counts,
        ];
        let reply = run(self.connection, &PERMIT_CHANGE, &keys, &args).await?;
        Ok(changed(&PERMIT_CHANGE, &reply)?)
    }

    /// Stores a limit that wins over those of the call sites.
    pub(crate) async fn set_limit(
        &self,
        keys: [&str; 5],
        limit: u32,
        not_after: ServerMillis,
    ) -> Result<Limited, Failure> {
        let [limit, prefix, counts] = self.site(limit);
        let args = [limit, Arg::Number(not_after), prefix, counts];
        let reply = run(self.connection, &PERMIT_LIMIT, &keys, &args).await?;
        Ok(limited(&PERMIT_LIMIT, &reply)?)
    }

    pub(crate) async fn inspect(&self, keys: [&str; 5], limit: u32) -> Result<PermitsInspected, Failure> {
        let reply = run(self.connection, &PERMIT_INSPECT, &keys, &[Arg::Number(limit.into())]).await?;
        Ok(permits_inspected(&PERMIT_INSPECT, &reply)?)
    }

    /// What every script that promotes is told.
    fn site(&self, limit: u32) -> [Arg<'_>; 3] {
        [Arg::Number(limit.into()), Arg::Text(self.inbox_prefix), counts_everyone(self.connection)]
    }
}
