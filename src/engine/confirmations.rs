//! Grants that wait until replicas have acknowledged them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Poll, Waker};

use crate::engine::lease::Hold;
use crate::protocol::dispatch::Failure;

/// What came of waiting for the replicas once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Confirmation {
    /// As many replicas as the hold needs have the grant.
    Acknowledged,
    /// Only so many have acknowledged it in time.
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
    /// Those that the watchdog has not seen yet.
    added: Vec<Arc<Hold>>,
    woken: Vec<Waker>,
}

#[derive(Debug, Default)]
struct Waiting {
    confirmation: Option<Confirmation>,
    waker: Option<Waker>,
}

impl Confirmations {
    /// The hold waits for its replicas, until it is [removed](Self::remove).
    pub(super) fn insert(&mut self, hold: &Arc<Hold>) {
        self.waiting.insert(hold.id.n, Waiting::default());
        self.added.push(hold.clone());
    }

    /// The caller does not wait any more.
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

    /// What came of waiting for the replicas of the hold.
    pub(super) fn set(&mut self, n: u64, confirmation: Confirmation) {
        if let Some(waiting) = self.waiting.get_mut(&n) {
            waiting.confirmation = Some(confirmation);
            self.woken.extend(waiting.waker.take());
        }
    }

    /// No caller waits any longer.
    pub(super) fn close(&mut self) {
        for waiting in self.waiting.values_mut() {
            waiting.confirmation = Some(Confirmation::Closed);
            self.woken.extend(waiting.waker.take());
        }
    }

    /// Keeps the waker, in exchange for the one before it, while nothing is known.
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

    /// The wakers of the callers that know more since the last call.
    pub(super) fn take_woken(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.woken)
    }
}
