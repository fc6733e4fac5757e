//! Calls and grants that wait for acknowledgements of replicas.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::engine::Engine;
use crate::engine::confirmations::Confirmation;
use crate::engine::lease::Hold;
use crate::engine::replica_waits::WaitsOn;
use crate::protocol::attempt_id::AttemptId;

/// While it exists, the hold waits for its replicas.
#[derive(Debug)]
pub(crate) struct Confirming<'a> {
    engine: &'a Engine,
    n: u64,
}

impl Confirming<'_> {
    pub(crate) async fn done(self) -> Confirmation {
        poll_fn(|context| self.engine.poll_confirmation(self.n, context)).await
    }
}

impl Drop for Confirming<'_> {
    fn drop(&mut self) {
        self.engine.change(|state| state.confirmations.remove(self.n));
    }
}

/// While it exists, a call waits for replicas.
#[derive(Debug)]
pub(crate) struct ReplicaWait<'a> {
    engine: &'a Engine,
    link: WaitsOn,
    /// The attempt to which the call belongs, if it belongs to one.
    attempt: Option<AttemptId>,
    enough: Option<bool>,
}

impl ReplicaWait<'_> {
    /// Records that the call was answered or has failed. `enough`: whether enough replicas have acknowledged, if that
    /// is known.
    pub(crate) fn answered(mut self, enough: Option<bool>) {
        self.enough = enough;
        if let Some(id) = self.attempt {
            self.engine.change(|state| {
                if let Some(attempt) = state.attempts.get_mut(id.n) {
                    attempt.waits_with = 0;
                }
            });
        }
    }
}

impl Drop for ReplicaWait<'_> {
    fn drop(&mut self) {
        self.engine.change(|state| state.confirmations.waits.end(self.link, self.enough));
    }
}

impl Engine {
    /// Records that a call which waits for replicas is about to be sent.
    pub(crate) fn begin_wait(&self, link: WaitsOn) -> ReplicaWait<'_> {
        self.change(|state| state.confirmations.waits.begin(link));
        ReplicaWait { engine: self, link, attempt: None, enough: None }
    }

    /// Whether the next request of the attempt waits for the replicas itself. A first request does, unless others would
    /// hold it up. The next one does as well if the first was not answered: over another connection it might overtake
    /// the first.
    pub(crate) fn wait_with_request(&self, id: AttemptId, is_first: bool, link: WaitsOn) -> Option<ReplicaWait<'_>> {
        self.change(|state| {
            let attempt = state.attempts.get_mut(id.n)?;
            let is_unanswered = attempt.waits_with == link.replicas;
            let may_begin = is_first && state.confirmations.waits.is_free(link);
            if !is_unanswered && !may_begin {
                return None;
            }
            attempt.waits_with = link.replicas;
            state.confirmations.waits.begin(link);
            Some(ReplicaWait { engine: self, link, attempt: Some(id), enough: None })
        })
    }

    /// As many replicas as the hold needs have acknowledged its grant.
    pub(crate) fn acknowledged(&self, hold: &Hold) {
        // A hold that needs no replicas was counted when it was granted.
        if hold.replicas > 0 {
            self.change(|state| state.stats.acquired += 1);
        }
    }

    /// Makes the watchdog ask the replicas once.
    pub(crate) fn confirm(&self, hold: &Arc<Hold>) -> Confirming<'_> {
        self.change(|state| {
            state.confirmations.insert(hold);
            if self.is_closed() {
                // The watchdog may have ended already.
                state.confirmations.close();
            }
        });
        Confirming { engine: self, n: hold.id.n }
    }

    /// Records the result of asking the replicas about the hold.
    pub(crate) fn confirmed(&self, hold: &Hold, confirmation: Confirmation) {
        self.change(|state| state.confirmations.set(hold.id.n, confirmation));
    }

    fn poll_confirmation(&self, n: u64, context: &mut Context<'_>) -> Poll<Confirmation> {
        // Cloned and dropped while the tables are unlocked, because a waker is foreign code.
        let mut waker = Some(context.waker().clone());
        let mut state = self.look();
        let polled = state.confirmations.poll(n, &mut waker);
        drop(state);
        polled
    }
}
