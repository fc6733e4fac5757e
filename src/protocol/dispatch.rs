//! What is asked of the server whatever the primitive: the kind of the keys decides which script does it.

use std::time::Duration;

use crate::connection::Connection;
use crate::protocol::key::{Keys, Kind};
use crate::protocol::latch::LatchScripts;
use crate::protocol::lock::LockScripts;
use crate::protocol::permit::PermitScripts;
use crate::protocol::reply::latch::{LatchHeartbeatReply, LatchInspected, LatchTicket, LatchWait};
use crate::protocol::reply::lock::{ForceReleased, Inspected};
use crate::protocol::reply::permit::{Changed, Limited, PermitsInspected};
use crate::protocol::reply::{
    Acquired, Cancelled, HeartbeatReply, Released, Renewed, Requeued, ServerMillis, TicketState,
};
use crate::protocol::ticket::attempt_id_of;
use crate::protocol::token::Token;

pub(crate) use crate::protocol::call::{AcquireArgs, Failure, TicketArgs};
pub(crate) use crate::protocol::permit::ChangeArgs;

/// Longer than any ticket lives without a heartbeat.
const LONG: Duration = Duration::from_secs(3600);

/// One hold to renew. A lease of zero looks without renewing.
pub(crate) type RenewArgs<'a> = (&'a Keys, &'a str, Duration);

/// A connection, and the arguments that are the same in every call a client makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scripts<'a> {
    pub(crate) connection: &'a dyn Connection,
    pub(crate) inbox_prefix: &'a str,
}

impl<'a> Scripts<'a> {
    fn lock(self) -> LockScripts<'a> {
        LockScripts { connection: self.connection, inbox_prefix: self.inbox_prefix }
    }

    pub(crate) fn latch(self) -> LatchScripts<'a> {
        LatchScripts { connection: self.connection, inbox_prefix: self.inbox_prefix }
    }

    fn permits(self) -> PermitScripts<'a> {
        PermitScripts { connection: self.connection, inbox_prefix: self.inbox_prefix }
    }

    pub(crate) async fn acquire(self, keys: &Keys, args: AcquireArgs<'_>) -> Result<Acquired, Failure> {
        match (keys.kind, keys.kind.limit()) {
            (_, Some(limit)) => self.permits().acquire(keys.permits(), args, limit).await,
            (Kind::Latch, _) => {
                Ok(match self.latch().wait(keys.latch(), args.attempt_id, args.ticket_ttl, args.not_after).await? {
                    LatchWait::Open { now } => Acquired::Granted { token: Token::NONE, now },
                    LatchWait::Queued { left, now } => {
                        // Its last millisecond has to be over.
                        let ends = left.map(|left| left + Duration::from_millis(5));
                        Acquired::Queued { holder_left: ends, length: 0, more: false, now }
                    }
                    LatchWait::Stale { now } => Acquired::Stale { now },
                })
            }
            (_, None) => self.lock().acquire(keys.lock(), args).await,
        }
    }

    /// Of what can be held: nobody holds a latch.
    pub(crate) async fn release(self, keys: &Keys, attempt_id: &str) -> Result<Released, Failure> {
        match keys.kind.limit() {
            None => self.lock().release(keys.lock(), attempt_id).await,
            Some(limit) => self.permits().release(keys.permits(), attempt_id, limit).await,
        }
    }

    /// Releases, and queues up a ticket with its time to live, in one step.
    pub(crate) async fn requeue(
        self,
        keys: &Keys,
        attempt_id: &str,
        ticket: TicketArgs<'_>,
    ) -> Result<Requeued, Failure> {
        match keys.kind.limit() {
            None => self.lock().requeue(keys.lock(), attempt_id, ticket).await,
            Some(limit) => self.permits().requeue(keys.permits(), attempt_id, limit, ticket).await,
        }
    }

    pub(crate) async fn cancel(self, keys: &Keys, ticket: &str, from_tail: bool) -> Result<Cancelled, Failure> {
        match (keys.kind, keys.kind.limit()) {
            (_, Some(limit)) => self.permits().cancel(keys.permits(), ticket, from_tail, limit).await,
            (Kind::Latch, _) => self.latch().cancel(keys.latch(), attempt_id_of(ticket)).await,
            (_, None) => self.lock().cancel(keys.lock(), ticket, from_tail).await,
        }
    }

    pub(crate) async fn heartbeat(self, keys: &Keys, tickets: &[TicketArgs<'_>]) -> Result<HeartbeatReply, Failure> {
        match (keys.kind, keys.kind.limit()) {
            (_, Some(limit)) => self.permits().heartbeat(keys.permits(), tickets, limit).await,
            (Kind::Latch, _) => {
                let waiters: Vec<_> = tickets.iter().map(|(ticket, ttl)| (attempt_id_of(ticket), *ttl)).collect();
                let LatchHeartbeatReply { now, more, tickets } = self.latch().heartbeat(keys.latch(), &waiters).await?;
                let state = |ticket| match ticket {
                    LatchTicket::Waiting => TicketState::Waiting,
                    LatchTicket::Open => TicketState::Granted(Token::NONE),
                    LatchTicket::Gone => TicketState::Gone,
                };
                // Nobody's lease is in the way: the tickets' own time decides when to ask again.
                let holder_left = Some(LONG);
                Ok(HeartbeatReply { now, holder_left, more, tickets: tickets.into_iter().map(state).collect() })
            }
            (_, None) => self.lock().heartbeat(keys.lock(), tickets).await,
        }
    }

    /// Either locks or permits. An answer that takes longer than `within` is of no use.
    pub(crate) async fn renew(self, holds: &[RenewArgs<'_>], within: Duration) -> Result<Renewed, Failure> {
        if holds.iter().all(|(keys, ..)| keys.kind == Kind::Lock) {
            let holds: Vec<_> = holds.iter().map(|(keys, id, lease)| (keys.main(), *id, *lease)).collect();
            self.lock().renew(&holds, within).await
        } else {
            let holds: Vec<_> = holds.iter().map(|(keys, id, lease)| (keys.held(), *id, *lease)).collect();
            self.permits().renew(&holds, within).await
        }
    }

    pub(crate) async fn inspect_latch(self, keys: &Keys) -> Result<LatchInspected, Failure> {
        self.latch().inspect(keys.latch()).await
    }

    pub(crate) async fn inspect_lock(self, keys: &Keys) -> Result<Inspected, Failure> {
        self.lock().inspect(keys.lock()).await
    }

    pub(crate) async fn force_release_lock(self, keys: &Keys, attempt_id: &str) -> Result<ForceReleased, Failure> {
        self.lock().force_release(keys.lock(), attempt_id).await
    }

    /// Of a semaphore or a read-write lock, as the following ones.
    pub(crate) async fn change(self, keys: &Keys, args: ChangeArgs<'_>) -> Result<Changed, Failure> {
        self.permits().change(keys.permits(), args).await
    }

    pub(crate) async fn set_limit(self, keys: &Keys, limit: u32, not_after: ServerMillis) -> Result<Limited, Failure> {
        self.permits().set_limit(keys.permits(), limit, not_after).await
    }

    pub(crate) async fn inspect(self, keys: &Keys, limit: u32) -> Result<PermitsInspected, Failure> {
        self.permits().inspect(keys.permits(), limit).await
    }
}
