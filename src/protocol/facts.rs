//! The properties of each kind of resource that are known without a server.

use super::limits::WRITE;
use super::ticket::Claim;

/// How a hold is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Permits in their main key only. They are stored so until a call needs the rest, such as that of another holder.
    Short,
    /// In all keys that a hold of its kind may have. It stays like that until its end.
    InFull,
}

/// The properties that distinguish one kind from the others, apart from its scripts.
#[derive(Debug)]
pub(super) struct Facts {
    /// The word in its keys.
    pub(super) word: &'static str,
    /// The suffixes of its keys after the main key, in the order of `KEYS` in its scripts.
    pub(super) suffixes: &'static [&'static str],
    /// The suffixes of further keys, which only some of its scripts need.
    pub(super) others: &'static [&'static str],
    /// The suffixes of the keys that a renewal needs.
    pub(super) renewed: &'static [&'static str],
    /// Whether a holder may acquire the resource again while it holds it.
    pub(super) is_reentrant: bool,
    /// The amount that covers two amounts which one caller wants. `None`: the caller would wait for itself.
    pub(super) joint: fn(one: u32, other: u32) -> Option<u32>,
    /// Whether non-fair acquisitions of that amount form a cohort.
    pub(super) joins_cohort: fn(amount: u32) -> bool,
    /// Whether a client may keep a hold of that amount after its last guard.
    pub(super) retains: fn(amount: u32) -> bool,
    /// Whether a cohort asks for its next hand-off budget while it holds.
    pub(super) asks_ahead: bool,
    /// Whether those who wait stand in a queue.
    pub(super) has_queue: bool,
    /// The claim of a ticket for that amount. The limit is that of a semaphore.
    pub(super) claim: fn(amount: u32, limit: Option<u32>) -> Claim,
}

pub(super) const LOCK: Facts = Facts {
    word: "lock",
    suffixes: &["", ":queue", ":tickets", ":fence"],
    others: &[],
    renewed: &[""],
    is_reentrant: true,
    joint: |tokens, _| Some(tokens),
    joins_cohort: |_| true,
    retains: |_| true,
    asks_ahead: true,
    has_queue: true,
    claim: |tokens, _| Claim::Tokens(tokens),
};

/// The queue of a RedLock: an ordinary lock on one master.
pub(super) const TURN: Facts = Facts { word: "turn", ..LOCK };

/// The vote of a master. Its queue stays empty.
pub(super) const VOTE: Facts = Facts { word: "vote", ..LOCK };

/// A run. Its queue stays empty.
pub(super) const ONCE: Facts =
    Facts { word: "once", is_reentrant: false, joins_cohort: |_| false, retains: |_| false, asks_ahead: false, ..LOCK };

/// The leadership of an election.
pub(super) const ELECTION: Facts =
    Facts { word: "election", others: &[":watchers", ":changes"], renewed: &["", ":changes"], ..ONCE };

/// A wait for a change of an election. Its keys are those of the election.
pub(super) const WATCH: Facts = Facts { word: ELECTION.word, suffixes: &["", ":watchers", ":changes"], ..LATCH };

/// The keys of permits: of a semaphore and of a read-write lock.
const SUFFIXES: &[&str] = &["", ":leases", ":queue", ":tickets", ":fence"];

pub(super) const SEMAPHORE: Facts = Facts {
    word: "sem",
    suffixes: SUFFIXES,
    others: &[],
    renewed: &["", ":leases"],
    is_reentrant: false,
    joint: |one, other| Some(one.saturating_add(other)),
    joins_cohort: |_| true,
    retains: |_| false,
    asks_ahead: true,
    has_queue: true,
    claim: |units, limit| Claim::Units { units, limit: limit.unwrap_or(units) },
};

pub(super) const READ_WRITE: Facts = Facts {
    word: "rw",
    suffixes: SUFFIXES,
    others: &[],
    renewed: &["", ":leases"],
    is_reentrant: true,
    joint: |one, other| (one == other).then_some(one),
    // Readers hold at the same time, so they have nothing to hand off to each other. The writer that
    // an upgradable reader becomes joins no cohort.
    joins_cohort: |units| units == WRITE,
    retains: |units| units == WRITE,
    asks_ahead: true,
    has_queue: true,
    claim: |units, _| Claim::Units { units, limit: WRITE },
};

pub(super) const LATCH: Facts = Facts {
    word: "latch",
    suffixes: &["", ":tickets", ":calls"],
    others: &[],
    renewed: &[],
    is_reentrant: false,
    joint: |_, _| None,
    joins_cohort: |_| false,
    retains: |_| false,
    asks_ahead: false,
    has_queue: true,
    claim: |_, _| Claim::Nothing,
};

/// Where the parties of a double barrier wait to enter, and where they are once they have come.
pub(super) const ENTRY: Facts = Facts { word: "entry", ..BARRIER };
pub(super) const INSIDE: Facts = Facts { word: "double", ..BARRIER };

pub(super) const BARRIER: Facts = Facts { word: "barrier", suffixes: &["", ":tickets", ":ended"], ..LATCH };

/// A lock in the format of Redisson. Its main key is the name itself, and its other key is not spelled like it. Without
/// tokens, a hold is as a writer's: all there is, and any number of hand-offs.
pub(super) const REDISSON: Facts = Facts {
    word: "redisson",
    suffixes: &[""],
    retains: |_| false,
    asks_ahead: false,
    has_queue: false,
    claim: |_, _| Claim::Units { units: WRITE, limit: WRITE },
    ..LOCK
};

/// The same, with tokens.
pub(super) const REDISSON_FENCED: Facts = Facts { claim: LOCK.claim, ..REDISSON };

/// A permit in the format of Redisson. Its other keys are not spelled like the main one, which is the name itself. Each
/// permit has an id of its own in the server, so permits are not handed off in the client.
pub(super) const TIMED_PERMIT: Facts = Facts {
    word: "redisson_permit",
    suffixes: &[""],
    renewed: &[],
    joins_cohort: |_| false,
    asks_ahead: false,
    has_queue: false,
    ..SEMAPHORE
};
