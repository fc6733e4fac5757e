//! What the rehearsals of all resources with a queue have in common. A rehearsal runs the scripts on connect to check
//! the user's rights. Everything it writes has a lease of one second, on keys that no other client uses: what another
//! check has left there would decide which branches this one takes.

use std::time::Duration;

use super::attempt_id::AttemptId;
use super::failure::Failure;
use super::resource::{AcquireArgs, Rehearsal, RenewArgs};
use super::ticket::Ticket;

/// The lease of everything that a rehearsal acquires.
pub(super) const LEASE: Duration = Duration::from_secs(1);

impl Rehearsal<'_> {
    /// Ids that no other attempt of the client has, because it counts from 1.
    pub(super) fn ids(&self) -> [AttemptId; 3] {
        [0, 1, 2].map(|n| AttemptId { client: self.client, n: i64::MAX.unsigned_abs() - n })
    }

    pub(super) fn tickets(&self, amount: u32) -> [Ticket; 3] {
        self.ids().map(|id| self.keys.kind.ticket(id, LEASE, amount))
    }

    pub(super) async fn try_acquire(&self, ticket: Ticket) -> Result<(), Failure> {
        let args = AcquireArgs { ticket, ticket_ttl: LEASE, wait: false, max_waiters: 0, not_after: 0 };
        self.scripts.acquire(self.keys, args).await.map(drop)
    }

    /// Queues up a ticket. With a zero `ttl`, it has expired at once.
    pub(super) async fn queue_up(&self, ticket: Ticket, ttl: Duration, max_waiters: u32) -> Result<(), Failure> {
        let args = AcquireArgs { ticket, ticket_ttl: ttl, wait: true, max_waiters, not_after: 0 };
        self.scripts.acquire(self.keys, args).await.map(drop)
    }

    /// Runs the queue with a holder, an expired ticket and a live one.
    pub(super) async fn queue(&self, amount: u32) -> Result<(), Failure> {
        let Self { scripts, keys, .. } = self;
        let tickets = self.tickets(amount);
        let [holder, dead, waiter] = tickets;
        // The rights to remove come first, because without them everything else would be left behind.
        scripts.cancel(keys, holder, false).await?;
        self.try_acquire(holder).await?;
        scripts.release(keys, holder.id).await?;
        self.try_acquire(holder).await?;
        self.try_acquire(holder).await?;
        // A ticket that has expired at once. It is removed to make room, and the second one by the release.
        self.queue_up(dead, Duration::ZERO, 0).await?;
        self.queue_up(waiter, Duration::ZERO, 1).await?;
        scripts.release(keys, holder.id).await?;
        // A waiter that sends a heartbeat and is notified.
        self.try_acquire(holder).await?;
        self.queue_up(waiter, LEASE, 0).await?;
        scripts.heartbeat(keys, &[(waiter, LEASE)]).await?;
        let renewal = RenewArgs { keys, id: holder.id, lease: LEASE, longest: LEASE, extended: true };
        scripts.renew(&[renewal], self.command_timeout).await?;
        scripts.release(keys, holder.id).await?;
        for ticket in tickets {
            scripts.cancel(keys, ticket, false).await?;
        }
        Ok(())
    }

    /// Cancels everything that may be queued or held, for one unit or `amount` units.
    pub(super) async fn cancel_tickets(self, amount: u32) {
        for ticket in self.tickets(1).into_iter().chain(self.tickets(amount)) {
            let _ = self.scripts.cancel(self.keys, ticket, false).await;
        }
    }
}
