//! Which acquisitions form a cohort.

use std::sync::Arc;

use crate::protocol::key::{Keys, Kind};

/// Names a cohort: each of its members can use what any other one is granted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CohortId {
    keys: Arc<Keys>,
    units: u32,
}

impl CohortId {
    /// `amount` is the last part of a ticket. Semaphores have a cohort for each number of permits. For a lock, `amount` is a
    /// number of tokens, and for a read-write lock only writers form a cohort, so both have one cohort for each name.
    pub(crate) fn of(keys: &Arc<Keys>, amount: u32) -> Self {
        let units = if let Kind::Semaphore { .. } = keys.kind { amount } else { 1 };
        Self { keys: keys.clone(), units }
    }

    /// How many members can hold at a time by the limit of their call sites. A limit stored by an operator may differ.
    pub(super) fn capacity(&self) -> usize {
        let holds =
            if let Kind::Semaphore { limit } = self.keys.kind { limit.checked_div(self.units) } else { Some(1) };
        usize::try_from(holds.unwrap_or(0)).unwrap_or(usize::MAX)
    }

    /// Whether a request is pointless while a member holds.
    pub(super) fn is_exclusive(&self) -> bool {
        !matches!(self.keys.kind, Kind::Semaphore { .. })
    }
}
