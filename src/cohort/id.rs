//! Which acquisitions form a cohort.

use std::sync::Arc;

use crate::protocol::key::Keys;
use crate::protocol::ticket::Claim;

/// Names a cohort: each of its members can use what any other one is granted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CohortId {
    keys: Arc<Keys>,
    /// Zero if the members ask for tokens, because members that ask for different numbers of tokens belong to the same
    /// cohort.
    units: u32,
}

impl CohortId {
    /// The cohort of acquisitions of `amount` tokens or units of this name.
    pub(crate) fn of(keys: &Arc<Keys>, amount: u32) -> Self {
        let units = match keys.kind.claim(amount) {
            Claim::Units { units, .. } => units,
            Claim::Tokens(_) | Claim::Nothing => 0,
        };
        Self { keys: keys.clone(), units }
    }

    pub(crate) fn keys(&self) -> &Arc<Keys> {
        &self.keys
    }

    /// How many members can hold at the same time if the limit of the call site applies. An operator may have stored
    /// another limit.
    pub(super) fn capacity(&self) -> usize {
        match self.keys.kind.claim(self.units) {
            Claim::Units { units, limit } => limit.checked_div(units).map_or(0, |holds| holds as usize),
            Claim::Tokens(_) | Claim::Nothing => 1,
        }
    }

    /// Whether a request is pointless while a member holds. It is not for a semaphore, because an operator may have
    /// stored a larger limit.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.keys.kind.claim(self.units).is_exclusive()
    }
}
