//! Numbers that the scripts share with the library. Each is defined here, and replaces its name in the Lua sources.

use std::time::Duration;

/// The units of a read-write lock: a writer takes them all. A semaphore has fewer, which is how scripts tell them
/// apart.
pub(crate) const WRITE: u32 = 1 << 20;

/// A reader takes one unit.
pub(crate) const READ: u32 = 1;

/// An upgradable reader takes so many units that two of them do not fit, and readers do.
pub(crate) const UPGRADABLE: u32 = WRITE / 2 + 1;

/// The rest, which an upgradable reader takes before it becomes the writer. Nobody else asks for so many.
pub(crate) const UPGRADE: u32 = WRITE - UPGRADABLE;

/// The most acquisitions that one grant may serve by local hand-off, and therefore the number of tokens that it
/// reserves.
pub(crate) const HANDOFF_BUDGET: u32 = 32;

/// The most acquisitions that a budget asked for ahead may serve. A budget is larger than the one before if the cohort
/// used that up while it waited for the answer. Fast hand-offs thus need not wait for the server.
pub(crate) const LARGEST_BUDGET: u32 = 512;

/// The longest life of a ticket without a heartbeat.
pub(crate) const MAX_TICKET_TTL: Duration = Duration::from_secs(30 * 60);

/// How long a queue lives after its last use. It is longer than the life of any ticket.
pub(crate) const QUEUE_TTL: Duration = Duration::from_secs(60 * 60);

/// How many of the waiters of a name are listed one by one.
pub(crate) const MAX_LISTED: u32 = 100;

/// The most holds of a name that one look lists.
pub(crate) const MOST_INSPECTED: usize = 1000;

/// How long the label of a client lives after it was stored last. A client stores it three times as often.
pub(crate) const LABEL_TTL: Duration = Duration::from_secs(15 * 60);

/// The number of changes of an election that are stored: the last one that a program has seen, and 64 that it has not.
pub(crate) const MAX_CHANGES: u32 = 65;

/// The most parties of a barrier. One command notifies them all.
pub(crate) const MAX_PARTIES: u32 = 1000;

/// The most permits of one call to a semaphore that Java shares: what a number of Java has room for.
pub(crate) const MAX_SHARED: u32 = i32::MAX.unsigned_abs();

/// How the generation of a barrier has ended for a party is one number: that of the generation, times this, plus the
/// place of the party or one of the numbers below.
pub(crate) const PLACES: u64 = 1024;

/// A party has left.
pub(crate) const LEFT: u64 = 1001;

/// The lease of a party has ended.
pub(crate) const EXPIRED: u64 = 1002;

/// An operator has broken the generation.
pub(crate) const BROKEN_BY_RESET: u64 = 1003;

/// The server has lost how many parties the barrier has.
pub(crate) const FORGOTTEN: u64 = 1004;

/// What Redisson writes for the end of a lease that has none.
const NO_END: u64 = 922_337_203_685_477;

/// The least time that a counter lives after a grant with a usual lease.
const COUNTER_LIFE: Duration = Duration::from_secs(60 * 60);

/// A counter is given so much more, so that the readers that follow need not extend its life.
const COUNTER_SLACK: Duration = Duration::from_secs(5 * 60);

/// Constants of the scripts: upper-case words in code, and strings that are such a word. Replaced by the number.
pub(super) const IN_LUA: &[(&str, u64)] = &[
    ("ALL_UNITS", WRITE as u64),
    ("HANDOFF_BUDGET", HANDOFF_BUDGET as u64),
    ("LARGEST_BUDGET", LARGEST_BUDGET as u64),
    ("MAX_TICKET_TTL", millis(MAX_TICKET_TTL)),
    ("QUEUE_TTL", millis(QUEUE_TTL)),
    // The TTL of the queue's keys is not renewed at each change, but early enough for every ticket.
    ("QUEUE_TTL_LEFT", millis(MAX_TICKET_TTL) + millis(MAX_TICKET_TTL) / 2),
    // A waiter asks after a third of its ticket's life. Announcing the end of a lease therefore helps only if the lease
    // is shorter.
    ("ANNOUNCED_LEASE", millis(MAX_TICKET_TTL) / 3),
    ("ANNOUNCED_TICKETS", 8),
    // What a counter is given, unless twice the grant's lease is longer.
    ("COUNTER_TTL", millis(COUNTER_LIFE) + millis(COUNTER_SLACK)),
    ("COUNTER_SLACK", millis(COUNTER_SLACK)),
    // Larger than any counter that the scripts write.
    ("COUNTER_LIMIT", (1 << 53) - 992),
    // A stored limit lives this long after its last use.
    ("LIMIT_TTL", 24 * 60 * 60 * 1000),
    ("MAX_CHANGES", MAX_CHANGES as u64),
    ("MAX_PARTIES", MAX_PARTIES as u64),
    ("MAX_SHARED", MAX_SHARED as u64),
    ("PLACES", PLACES),
    ("LEFT", LEFT),
    ("EXPIRED", EXPIRED),
    ("BROKEN_BY_RESET", BROKEN_BY_RESET),
    ("FORGOTTEN", FORGOTTEN),
    // What a reset is remembered by that found no party.
    ("NONE_WAITED", FORGOTTEN + 1),
    // The most grants of one call. It replies "more" if there are more to make.
    ("MAX_GRANTED", 128),
    ("MAX_DROPPED", 64),
    ("MAX_TRIMMED", 16),
    ("MAX_EXPIRED", 256),
    ("MAX_EXCEEDING", 256),
    ("MAX_TOLD", 1000),
    ("MAX_FORGOTTEN", 16),
    ("MAX_INSPECTED", MOST_INSPECTED as u64),
    ("NO_END", NO_END),
    // The most tickets that one call looks at to drop some, and the most that it drops: a removal searches the list.
    ("MAX_LOOKED_AT", 1000),
    ("MAX_REMOVED", 256),
    // The most tickets that one call skips because they cannot be granted now or their clients do not listen.
    ("MAX_PASSED", 128),
    ("MAX_SILENT", 16),
];

const fn millis(duration: Duration) -> u64 {
    duration.as_secs() * 1000
}
