//! How holds, tickets and the client come to an end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::key::Keys;
use crate::lease::{Hold, Loss};
use crate::ledger::Ledger;
use crate::sync::lock;
use crate::ticket::ticket;

/// Something to end in Redis, ticket or hold, that nobody in this process waits for any more.
#[derive(Clone, Debug)]
pub(crate) struct Cleanup {
    pub(crate) keys: Arc<Keys>,
    pub(crate) ticket: String,
    pub(crate) from_tail: bool,
    /// By then it has ended by itself.
    pub(crate) until: Instant,
}

/// Until this is dropped, a hold is being released or changed.
#[derive(Debug)]
pub(crate) struct Ending<'a>(&'a Ledger);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.change(|state, effects| {
            state.ending_holds = state.ending_holds.saturating_sub(1);
            effects.idle = state.is_idle();
            effects.work = state.ending;
        });
    }
}

impl Ledger {
    /// A hold is being released or changed: closing waits for that.
    pub(crate) fn ending(&self) -> Ending<'_> {
        lock(&self.state).ending_holds += 1;
        Ending(self)
    }

    /// Releases the hold in the background.
    pub(crate) fn release_later(&self, hold: &Hold, now: Instant) {
        self.change(|state, effects| {
            state.end_hold(hold.id.n, effects);
            state.clean_up(Cleanup::of(hold, now), effects);
        });
    }

    /// Asks again about a name, because a script had more to do than one call may.
    pub(crate) fn promote_later(&self, keys: &Arc<Keys>, now: Instant, lease: Duration) {
        // A ticket that nobody has: cancelling it changes nothing and promotes.
        let cleanup = Cleanup {
            keys: keys.clone(),
            ticket: ticket(self.wire_id(0), lease, 1),
            from_tail: false,
            until: now + lease,
        };
        self.change(|state, effects| state.clean_up(cleanup, effects));
    }

    /// Ends everything: waiting attempts fail, holds are lost, both are cleaned up in Redis.
    pub(crate) fn close(&self, now: Instant) {
        self.change(|state, effects| {
            state.closed = true;
            let open: Vec<u64> = state.open.keys().copied().collect();
            for id in open {
                state.give_up(self.wire_id(id), now, effects);
            }
            let holds: Vec<u64> = state.holds.keys().copied().collect();
            for id in holds {
                if let Some(hold) = state.lose(id, Loss::Closed, effects) {
                    state.clean_up(Cleanup::of(&hold, now), effects);
                }
            }
            effects.wakers.extend(state.lines.wakers());
        });
    }

    /// Resolves once no clean-up is waiting or under way.
    pub(crate) async fn cleaned(&self) {
        loop {
            let listener = self.idle.listen();
            if lock(&self.state).is_idle() {
                return;
            }
            listener.await;
        }
    }

    /// Lets the watchdog end once nothing is left to clean up.
    pub(crate) fn end(&self) {
        self.change(|state, effects| {
            state.closed = true;
            state.ending = true;
            effects.work = true;
        });
    }

    /// The watchdog is gone, with its runtime: nothing will be renewed, touched or cleaned up any more.
    pub(crate) fn die(&self) {
        self.change(|state, effects| {
            state.closed = true;
            state.dead = true;
            state.cleanups.drain();
            effects.wakers.extend(state.open.drain().filter_map(|(_, attempt)| attempt.waker));
            effects.wakers.extend(state.lines.wakers());
            effects.losses.extend(state.holds.drain().map(|(_, hold)| (hold, Loss::Closed)));
            effects.idle = true;
        });
    }

    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.state).closed
    }
}
