//! The kinds of resources. The scripts of each are registered in [`registry`](super::registry).

use std::time::Duration;

use super::attempt_id::AttemptId;
use super::facts::{
    BARRIER, ELECTION, ENTRY, Facts, INSIDE, LATCH, LOCK, ONCE, READ_WRITE, REDISSON, REDISSON_FENCED, SEMAPHORE,
    TIMED_PERMIT, TURN, VOTE, WATCH,
};
use super::ticket::{Claim, Ticket};
use super::token::Token;

/// What a name refers to. The kind is part of every key, so resources of different kinds may share a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Lock,
    Semaphore {
        limit: u32,
    },
    ReadWrite,
    Latch,
    /// A wait at a cyclic barrier.
    Barrier {
        parties: u32,
        /// For how long after its arrival a party, or a copy of its request, may ask, in milliseconds.
        keep: u64,
    },
    /// A wait to enter a double barrier.
    Entry {
        parties: u32,
        keep: u64,
        /// The generation after which the party has come inside.
        of: u64,
    },
    /// The time of a party inside a double barrier.
    Inside {
        parties: u32,
        keep: u64,
    },
    /// The queue of a RedLock on one master.
    Turn,
    /// The vote of one master of a RedLock.
    Vote,
    /// Runs that happen once in a period.
    Once {
        /// When the one period begins in which a run may begin, in milliseconds since 1970. 0: each multiple of
        /// `period` begins a period.
        first: u64,
        /// In milliseconds.
        period: u64,
        /// Whether a run that has not ended well does not count.
        retries: bool,
    },
    /// The leadership of an election.
    Election,
    /// A wait for a change of an election.
    Watch {
        /// The revision of the last change that the caller has read, or 0.
        known: u64,
        /// The term that the caller takes for the present one.
        leads: Option<Token>,
    },
    /// A lock in the format of Redisson.
    Redisson {
        /// Whether grants have fencing tokens.
        fenced: bool,
    },
    /// A permit that expires, in the format of Redisson.
    TimedPermit {
        /// For how long after its end a copy of the request that takes the permit may be executed, in milliseconds.
        keep: u64,
    },
}

impl Kind {
    /// One of each kind.
    #[cfg(test)]
    pub(super) const ALL: [Self; 15] = [
        Self::Lock,
        Self::Semaphore { limit: 3 },
        Self::ReadWrite,
        Self::Latch,
        Self::Barrier { parties: 2, keep: 0 },
        Self::Entry { parties: 2, keep: 0, of: 0 },
        Self::Inside { parties: 2, keep: 0 },
        Self::Turn,
        Self::Vote,
        Self::Once { first: 0, period: 1000, retries: false },
        Self::Election,
        Self::Watch { known: 0, leads: None },
        Self::Redisson { fenced: false },
        Self::Redisson { fenced: true },
        Self::TimedPermit { keep: 1000 },
    ];

    pub(super) fn facts(self) -> &'static Facts {
        match self {
            Self::Lock => &LOCK,
            Self::Semaphore { .. } => &SEMAPHORE,
            Self::ReadWrite => &READ_WRITE,
            Self::Latch => &LATCH,
            Self::Barrier { .. } => &BARRIER,
            Self::Entry { .. } => &ENTRY,
            Self::Inside { .. } => &INSIDE,
            Self::Turn => &TURN,
            Self::Vote => &VOTE,
            Self::Once { .. } => &ONCE,
            Self::Election => &ELECTION,
            Self::Watch { .. } => &WATCH,
            Self::Redisson { fenced: false } => &REDISSON,
            Self::Redisson { fenced: true } => &REDISSON_FENCED,
            Self::TimedPermit { .. } => &TIMED_PERMIT,
        }
    }

    /// Whether those that have a ticket count each other, so that a ticket that was given up still counts.
    pub(crate) fn has_parties(self) -> bool {
        matches!(self, Self::Barrier { .. } | Self::Entry { .. } | Self::Inside { .. })
    }

    /// Whether a ticket becomes a hold. Otherwise its wait ends with an event, and nothing is left in Redis.
    pub(crate) fn has_holds(self) -> bool {
        self.with(|resource| resource.held().is_some())
    }

    pub(crate) fn word(self) -> &'static str {
        self.facts().word
    }

    pub(crate) fn is_reentrant(self) -> bool {
        self.facts().is_reentrant
    }

    /// The amount that covers both if one caller wants both at the same time. `None`: the caller would wait for itself.
    pub(crate) fn joint(self, one: u32, other: u32) -> Option<u32> {
        (self.facts().joint)(one, other)
    }

    pub(crate) fn joins_cohort(self, amount: u32) -> bool {
        (self.facts().joins_cohort)(amount)
    }

    /// Whether a client may keep a hold of that amount after its last guard.
    pub(crate) fn retains(self, amount: u32) -> bool {
        (self.facts().retains)(amount)
    }

    /// Whether a cohort asks for its next hand-off budget while it holds.
    pub(crate) fn asks_ahead(self) -> bool {
        self.facts().asks_ahead
    }

    /// Whether those who wait stand in a queue, from which a release grants to the next one. Otherwise all of them are
    /// woken, and ask.
    pub(crate) fn has_queue(self) -> bool {
        self.facts().has_queue
    }

    /// Whether the format of its keys is Redisson's.
    pub(super) fn is_redissons(self) -> bool {
        matches!(self, Self::Redisson { .. } | Self::TimedPermit { .. })
    }

    pub(crate) fn claim(self, amount: u32) -> Claim {
        let limit = if let Self::Semaphore { limit } = self { Some(limit) } else { None };
        (self.facts().claim)(amount, limit)
    }

    /// The ticket of an attempt.
    pub(crate) fn ticket(self, id: AttemptId, lease: Duration, amount: u32) -> Ticket {
        Ticket { id, lease, claim: self.claim(amount), rest: 0 }
    }
}
