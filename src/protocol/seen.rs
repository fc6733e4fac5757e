//! What is stored of a resource, in one form for all kinds.

use std::time::Duration;

use super::barrier;
use super::barrier::reply::BarrierInspected;
use super::call::{ScriptCall, Scripts};
use super::failure::Failure;
use super::fields::Fields;
use super::key::Keys;
use super::kind::Kind;
use super::latch::Latch;
use super::latch::reply::{LatchInspected, latch_inspected};
use super::limits::MOST_INSPECTED;
use super::mutex;
use super::mutex::reply::{Inspected, inspected};
use super::permits::Permits;
use super::permits::reply::{PermitHold, PermitsInspected, permits_inspected};
use super::redisson::{self, SharedInspected};
use super::ticket::{Claim, Ticket};
use super::timed_permits::{self, TimedInspected};
use super::token::Token;

/// Who holds a resource and who waits for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// At most a thousand.
    pub(crate) holds: Vec<SeenHold>,
    /// How many units the resource has, if that is stored.
    pub(crate) limit: Option<u32>,
    pub(crate) waiters: u64,
    /// The first tickets of the queue.
    pub(crate) queue: Vec<Ticket>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeenHold {
    /// The attempt id, unless another program has written it.
    pub(crate) id: String,
    /// [`Token::NONE`] if holds of this kind have no token.
    pub(crate) token: Token,
    /// `None`: the lease has no end, because another program has written the hold.
    pub(crate) left: Option<Duration>,
    /// What it would claim in the queue. A limit that is not known is as large as the units.
    pub(crate) claim: Claim,
}

impl Scripts<'_> {
    /// Who holds the resource and who waits for it, with the first `listed` tickets.
    pub(crate) async fn seen(self, keys: &Keys, listed: u32) -> Result<Seen, Failure> {
        self.send(seen(keys, listed)).await
    }

    /// Like [`seen`](Self::seen), for several resources by calls that are sent at once. Each is looked at in one
    /// moment. Errors are those of single resources.
    pub(crate) async fn seen_each(self, all: &[&Keys], listed: u32, within: Duration) -> Vec<Result<Seen, Failure>> {
        let calls: Vec<_> = all.iter().map(|keys| seen(keys, listed)).collect();
        self.send_each(&calls, within).await
    }
}

fn seen(keys: &Keys, listed: u32) -> ScriptCall<'_, Seen> {
    match keys.kind {
        Kind::Lock | Kind::Turn | Kind::Vote | Kind::Once { .. } | Kind::Election => {
            mutex::inspect(keys, listed).read_as(|fields| inspected(fields).map(Seen::of_mutex))
        }
        // A limit of 0 comes back if none is stored.
        Kind::Semaphore { .. } => Permits { limit: 0 }.inspect(keys, listed).read_as(of_semaphore),
        Kind::ReadWrite => Permits::READ_WRITE.inspect(keys, listed).read_as(of_rw_lock),
        Kind::Redisson { .. } => {
            redisson::inspect(keys).read_as(|fields| redisson::inspected(fields).map(Seen::of_shared))
        }
        Kind::TimedPermit { .. } => timed_permits::inspect(keys, MOST_INSPECTED)
            .read_as(|fields| timed_permits::inspected(fields).map(Seen::of_timed)),
        Kind::Latch | Kind::Watch { .. } => {
            Latch.inspect(keys, listed).read_as(|fields| latch_inspected(fields).map(Seen::of_latch))
        }
        Kind::Barrier { .. } | Kind::Entry { .. } | Kind::Inside { .. } => {
            barrier::inspect(keys, listed).read_as(|fields| barrier::reply::inspected(fields).map(Seen::of_barrier))
        }
    }
}

fn of_semaphore(fields: &mut Fields<'_>) -> Option<Seen> {
    permits_inspected(fields).map(|inspected| Seen::of_permits(inspected, Kind::Semaphore { limit: 1 }))
}

fn of_rw_lock(fields: &mut Fields<'_>) -> Option<Seen> {
    permits_inspected(fields).map(|inspected| Seen::of_permits(inspected, Kind::ReadWrite))
}

impl Seen {
    fn of_mutex(Inspected { holder, waiters, queue, .. }: Inspected) -> Self {
        let holds =
            holder.into_iter().map(|(id, token, left)| SeenHold { id, token, left, claim: Kind::Lock.claim(1) });
        Self { holds: holds.collect(), limit: None, waiters, queue }
    }

    fn of_permits(PermitsInspected { holds, limit, waiters, queue, .. }: PermitsInspected, kind: Kind) -> Self {
        let limit = Some(limit).filter(|limit| *limit > 0);
        let hold = |PermitHold { attempt_id: id, units, token, left }| SeenHold {
            id,
            token,
            left: Some(left),
            claim: kind.claim(units),
        };
        Self { holds: holds.into_iter().map(hold).collect(), limit, waiters, queue }
    }

    fn of_timed(TimedInspected { permits, .. }: TimedInspected) -> Self {
        let hold = |(id, left)| SeenHold { id, token: Token::NONE, left, claim: Claim::Units { units: 1, limit: 1 } };
        Self { holds: permits.into_iter().map(hold).collect(), ..Self::default() }
    }

    fn of_shared(SharedInspected { owner, .. }: SharedInspected) -> Self {
        let holds =
            owner.into_iter().map(|(id, _, left)| SeenHold { id, token: Token::NONE, left, claim: Claim::Tokens(1) });
        Self { holds: holds.collect(), ..Self::default() }
    }

    /// What is stored of two resources that make up one.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.holds.extend(other.holds);
        self.queue.extend(other.queue);
        Self { limit: self.limit.or(other.limit), waiters: self.waiters + other.waiters, ..self }
    }

    fn of_latch(LatchInspected { waiters, queue, .. }: LatchInspected) -> Self {
        Self { waiters, queue, ..Self::default() }
    }

    fn of_barrier(BarrierInspected { waiters, queue, .. }: BarrierInspected) -> Self {
        Self { waiters, queue, ..Self::default() }
    }
}
