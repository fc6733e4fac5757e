//! Which acquisitions form a cohort.

use std::sync::Arc;

use crate::protocol::key::Keys;
use crate::protocol::limits::WRITE;
use crate::protocol::ticket::Claim;

/// Names a cohort: each of its members can use what any other one is granted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CohortId {
    keys: Arc<Keys>,
    /// Zero if the members ask for tokens: the number of tokens makes no difference.
    units: u32,
}

impl CohortId {
    /// The cohort of an acquisition that asks for that many tokens or units.
    pub(crate) fn of(keys: &Arc<Keys>, amount: u32) -> Self {
        let units = match keys.kind.claim(amount) {
            Claim::Units { units, .. } => units,
            Claim::Tokens(_) | Claim::Nothing => 0,
        };
        Self { keys: keys.clone(), units }
    }

    /// How many members can hold at a time by the limit of their call sites. A limit stored by an operator may differ.
    pub(super) fn capacity(&self) -> usize {
        match self.keys.kind.claim(self.units) {
            Claim::Units { units, limit } => limit.checked_div(units).map_or(0, |holds| holds as usize),
            Claim::Tokens(_) | Claim::Nothing => 1,
        }
    }

    /// Whether a request is pointless while a member holds. Of a semaphore, it is not: an operator may have stored a larger limit.
    pub(super) fn is_exclusive(&self) -> bool {
        match self.keys.kind.claim(self.units) {
            Claim::Units { units, .. } => units == WRITE,
            Claim::Tokens(_) | Claim::Nothing => true,
        }
    }
}
