//! The properties of a kind of resource that are known without a server.

use super::ticket::Claim;

/// The properties that distinguish one kind from the others, apart from its scripts.
#[derive(Debug)]
pub(super) struct Facts {
    /// The word in its keys.
    pub(super) word: &'static str,
    /// The suffixes of its keys after the main key, in the order of `KEYS` in its scripts.
    pub(super) suffixes: &'static [&'static str],
    /// The number of these keys, counted from the first, that a renewal needs.
    pub(super) renewed: usize,
    /// Whether a holder may acquire the resource again while it holds it.
    pub(super) is_reentrant: bool,
    /// The amount that covers two amounts which one caller wants. `None`: the caller would wait for itself.
    pub(super) joint: fn(one: u32, other: u32) -> Option<u32>,
    /// Whether non-fair acquisitions of that amount form a cohort.
    pub(super) joins_cohort: fn(amount: u32) -> bool,
    /// Whether a cohort asks for its next hand-off budget while it holds.
    pub(super) asks_ahead: bool,
    /// The claim of a ticket for that amount. The limit is that of a semaphore.
    pub(super) claim: fn(amount: u32, limit: Option<u32>) -> Claim,
}
