//! What distinguishes a semaphore and a read-write lock.

use crate::protocol::facts::Facts;
use crate::protocol::limits::{READ, WRITE};
use crate::protocol::ticket::Claim;

const SUFFIXES: &[&str] = &["", ":leases", ":queue", ":tickets", ":fence"];

pub(in crate::protocol) const SEMAPHORE: Facts = Facts {
    word: "sem",
    suffixes: SUFFIXES,
    renewed: 2,
    is_reentrant: false,
    joins_cohort: |_| true,
    claim: |units, limit| Claim::Units { units, limit: limit.unwrap_or(units) },
};

pub(in crate::protocol) const READ_WRITE: Facts = Facts {
    word: "rw",
    suffixes: SUFFIXES,
    renewed: 2,
    is_reentrant: true,
    // Readers hold together, so there is nothing to hand off between them.
    joins_cohort: |units| units != READ,
    claim: |units, _| Claim::Units { units, limit: WRITE },
};
