//! Numbers that scripts and library share: each is spelled here, and composed into the Lua sources by its name.

use std::time::Duration;

/// The units of a read-write lock: a writer takes them all. A semaphore has fewer, which is how scripts tell them apart.
pub(crate) const WRITE: u32 = 1 << 20;

/// A reader takes one unit.
pub(crate) const READ: u32 = 1;

/// Most acquisitions that one grant may serve by local hand-off, and so the tokens that it reserves.
pub(crate) const HANDOFF_BUDGET: u32 = 32;

/// No ticket lives longer without a heartbeat.
pub(crate) const MAX_TICKET_TTL: Duration = Duration::from_secs(30 * 60);

/// Queues live this long after they were used last: longer than any ticket.
pub(crate) const QUEUE_TTL: Duration = Duration::from_secs(60 * 60);

/// Constants of the scripts: upper-case words outside strings and comments, replaced by the number.
pub(super) const IN_LUA: &[(&str, u64)] = &[
    ("ALL_UNITS", WRITE as u64),
    ("HANDOFF_BUDGET", HANDOFF_BUDGET as u64),
    ("MAX_TICKET_TTL", millis(MAX_TICKET_TTL)),
    ("QUEUE_TTL", millis(QUEUE_TTL)),
    // The queue's keys are not refreshed at each change, but early enough for every ticket.
    ("QUEUE_TTL_LEFT", millis(MAX_TICKET_TTL) + millis(MAX_TICKET_TTL) / 2),
    // A waiter looks after a third of its ticket's life, so an announcement is of use for shorter leases only.
    ("ANNOUNCED_LEASE", millis(MAX_TICKET_TTL) / 3),
    ("ANNOUNCED_TICKETS", 8),
    // A counter lives this long after a grant, or twice as long as the grant's lease.
    ("COUNTER_TTL", 60 * 60 * 1000),
    // Larger than any counter that the scripts write.
    ("COUNTER_LIMIT", (1 << 53) - 992),
    // A stored limit lives this long after it was used last.
    ("LIMIT_TTL", 24 * 60 * 60 * 1000),
    // What one call does at most; it replies "more" if there is more to do.
    ("MAX_GRANTED", 128),
    ("MAX_DROPPED", 64),
    ("MAX_TRIMMED", 16),
    ("MAX_EXPIRED", 256),
    ("MAX_EXCEEDING", 256),
    ("MAX_TOLD", 1000),
    ("MAX_FORGOTTEN", 16),
    ("MAX_INSPECTED", 1000),
    // What one call passes over at most: tickets that cannot be granted now, and silent clients.
    ("MAX_PASSED", 128),
    ("MAX_SILENT", 16),
];

const fn millis(duration: Duration) -> u64 {
    duration.as_secs() * 1000
}
