//! Who holds a read-write lock, and who waits.

use crate::inspect::{Access, HolderState, Labels, WaiterState};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::limits::WRITE;
use crate::protocol::permits::reply::PermitHold;
use crate::protocol::ticket::{Claim, Ticket};

/// The state of a read-write lock, as read by [`RwLock::inspect`](crate::RwLock::inspect).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct RwLockState {
    /// The writer, or `None` if no acquisition writes.
    pub writer: Option<HolderState>,
    /// The reader that may upgrade to the writer, or what is left of its upgrade; `None` if there is none.
    #[cfg_attr(feature = "serde", serde(default))]
    pub upgradable: Option<HolderState>,
    /// The other readers: at most 1,000, those whose leases end first.
    pub readers: Vec<HolderState>,
    /// The number of tickets in the queue, counted as in [`LockState::waiters`](crate::LockState::waiters). A
    /// [cohort](crate::Acquire::non_fair) of writers has at most one ticket.
    pub waiters: u64,
    /// Those of the first 100 tickets of the queue that have not expired, in its order.
    #[cfg_attr(feature = "serde", serde(default))]
    pub queue: Vec<WaiterState>,
}

impl RwLockState {
    /// `idle`: whether the writer's client keeps the lock idle.
    pub(super) fn of(
        labels: &Labels,
        (holds, idle): (Vec<PermitHold>, Option<bool>),
        (waiters, queue): (u64, Vec<Ticket>),
    ) -> Self {
        let mut state =
            Self { writer: None, upgradable: None, readers: Vec::new(), waiters, queue: labels.queue(queue) };
        let mut upgrades = None;
        for PermitHold { attempt_id, units, token, left: remaining } in holds {
            let client = AttemptId::client_of(&attempt_id);
            let holder = HolderState { client, label: labels.get(client), token, remaining, idle: None };
            match Access::of(Claim::Units { units, limit: WRITE }) {
                Access::Write => state.writer = Some(HolderState { idle, ..holder }),
                Access::UpgradableRead => state.upgradable = Some(holder),
                // Most often beside the hold of the upgradable reader, of which it is the rest.
                Access::Upgrade => upgrades = Some(holder),
                _ => state.readers.push(holder),
            }
        }
        state.upgradable = state.upgradable.or(upgrades);
        state
    }
}
