//! The properties of a semaphore and a read-write lock.

use crate::protocol::facts::Facts;
use crate::protocol::limits::{READ, WRITE};
use crate::protocol::ticket::Claim;

const SUFFIXES: &[&str] = &["", ":leases", ":queue", ":tickets", ":fence"];

pub(in crate::protocol) const SEMAPHORE: Facts = Facts {
    word: "sem",
    suffixes: SUFFIXES,
    renewed: 2,
    is_reentrant: false,
    joint: |one, other| Some(one.saturating_add(other)),
    joins_cohort: |_| true,
    asks_ahead: false,
    claim: |units, limit| Claim::Units { units, limit: limit.unwrap_or(units) },
};

pub(in crate::protocol) const READ_WRITE: Facts = Facts {
    word: "rw",
    suffixes: SUFFIXES,
    renewed: 2,
    is_reentrant: true,
    joint: |one, other| (one == other).then_some(one),
    // Readers hold at the same time, so they have nothing to hand off to each other.
    joins_cohort: |units| units != READ,
    asks_ahead: false,
    claim: |units, _| Claim::Units { units, limit: WRITE },
};
