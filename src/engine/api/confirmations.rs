//! Grants that wait for replicas.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::engine::Engine;
use crate::engine::confirmations::Confirmation;
use crate::engine::lease::Hold;

/// A hold waits for its replicas, until this is dropped.
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

impl Engine {
    /// Has the watchdog ask the replicas once.
    pub(crate) fn confirm(&self, hold: &Arc<Hold>) -> Confirming<'_> {
        self.change(|state| {
            state.confirmations.insert(hold);
            if state.is_closed {
                // There may be no watchdog any more.
                state.confirmations.close();
            }
        });
        Confirming { engine: self, n: hold.id.n }
    }

    /// What came of asking the replicas of the hold.
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
