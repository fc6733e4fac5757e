//! Grants that wait for acknowledgements of replicas.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Poll, Waker};

use crate::engine::lease::Hold;
use crate::engine::replica_waits::ReplicaWaits;
use crate::protocol::dispatch::Failure;
use crate::wakers::Wakers;

/// The result of waiting for the replicas once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Confirmation {
    /// As many replicas as the hold needs have acknowledged the grant.
    Acknowledged,
    /// Fewer replicas acknowledged the grant in time. The number of those that did.
    TooFew(u32),
    /// The server no longer has the hold.
    Gone,
    /// The server gave no usable answer.
    Failed(Failure),
    /// The client was closed.
    Closed,
}

#[derive(Debug, Default)]
pub(super) struct Confirmations {
    waiting: BTreeMap<u64, Waiting>,
    /// Holds that the watchdog has not seen yet.
    added: Vec<Arc<Hold>>,
    pub(super) waits: ReplicaWaits,
    woken: Wakers,
}

#[derive(Debug, Default)]
struct Waiting {
    confirmation: Option<Confirmation>,
    waker: Option<Waker>,
}

impl Confirmations {
    /// Adds a hold that waits for its replicas until it is [removed](Self::remove).
    pub(super) fn insert(&mut self, hold: &Arc<Hold>) {
        self.waiting.insert(hold.id.n, Waiting::default());
        self.added.push(hold.clone());
    }

    /// Removes the hold, because its caller waits no more.
    pub(super) fn remove(&mut self, n: u64) {
        self.waiting.remove(&n);
        self.added.retain(|hold| hold.id.n != n);
    }

    /// The holds that were inserted since the last call.
    pub(super) fn start(&mut self) -> Vec<Arc<Hold>> {
        std::mem::take(&mut self.added)
    }

    pub(super) fn is_added(&self) -> bool {
        !self.added.is_empty()
    }

    /// Sets the result of waiting for the replicas of the hold.
    pub(super) fn set(&mut self, n: u64, confirmation: Confirmation) {
        if let Some(waiting) = self.waiting.get_mut(&n) {
            waiting.confirmation = Some(confirmation);
            self.woken.extend(waiting.waker.take());
        }
    }

    /// Ends the wait of all callers.
    pub(super) fn close(&mut self) {
        for waiting in self.waiting.values_mut() {
            waiting.confirmation = Some(Confirmation::Closed);
            self.woken.extend(waiting.waker.take());
        }
    }

    /// Returns the result, if there is one. Otherwise `waker` is swapped with the waker stored before.
    pub(super) fn poll(&mut self, n: u64, waker: &mut Option<Waker>) -> Poll<Confirmation> {
        let Some(waiting) = self.waiting.get_mut(&n) else { return Poll::Pending };
        match waiting.confirmation.take() {
            Some(confirmation) => Poll::Ready(confirmation),
            None => {
                std::mem::swap(&mut waiting.waker, waker);
                Poll::Pending
            }
        }
    }

    /// The wakers of the callers whose result is set. The caller takes them.
    pub(super) fn woken(&mut self) -> &mut Wakers {
        &mut self.woken
    }
}
