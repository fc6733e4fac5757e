//! What is known of a kind of resource without a server.

use super::ticket::Claim;

/// What distinguishes one kind from the others, but for its scripts.
#[derive(Debug)]
pub(super) struct Facts {
    /// The word in its keys.
    pub(super) word: &'static str,
    /// What follows the main key in each of its keys, in the order of `KEYS` in its scripts.
    pub(super) suffixes: &'static [&'static str],
    /// How many of these keys, from the first on, a renewal needs.
    pub(super) renewed: usize,
    /// Whether a holder may acquire it again.
    pub(super) is_reentrant: bool,
    /// Whether non-fair acquisitions of that amount form a cohort.
    pub(super) joins_cohort: fn(amount: u32) -> bool,
    /// What a ticket for that amount asks for. The limit is a semaphore's.
    pub(super) claim: fn(amount: u32, limit: Option<u32>) -> Claim,
}
