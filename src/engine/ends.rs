//! How holds, tickets and the client come to an end.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::Engine;
use crate::engine::lease::Hold;
use crate::engine::state::{Effects, State};
use crate::mutex::lock;
use crate::protocol::key::Keys;
use crate::protocol::ticket::Ticket;

/// Something to end in Redis, ticket or hold, that nobody in this process waits for any more.
#[derive(Clone, Debug)]
pub(crate) struct Cleanup {
    pub(crate) keys: Arc<Keys>,
    pub(crate) ticket: Ticket,
    pub(crate) from_tail: bool,
    /// By then it has ended by itself.
    pub(crate) until: Instant,
}

/// Until this is dropped, a hold is being released or changed.
#[derive(Debug)]
pub(crate) struct Ending<'a> {
    engine: &'a Engine,
    n: u64,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.engine.change(|state, effects| {
            state.ending_holds.remove(&self.n);
            effects.idle = state.is_idle();
            effects.work = state.ending;
        });
    }
}

impl Engine {
    /// The hold is being released or changed: closing waits for that, and the end of the runtime finishes it.
    pub(crate) fn ending(&self, hold: &Arc<Hold>) -> Ending<'_> {
        let mut state = lock(&self.state);
        state.last_ending += 1;
        let n = state.last_ending;
        state.ending_holds.insert(n, hold.clone());
        Ending { engine: self, n }
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
            ticket: keys.kind.ticket(self.attempt_id(0), lease, 1),
            from_tail: false,
            until: now + lease,
        };
        self.change(|state, effects| state.clean_up(cleanup, effects));
    }

    /// Ends everything: waiting attempts fail, holds are lost, both are cleaned up in Redis.
    pub(crate) fn close(&self, now: Instant) {
        self.change(|state, effects| {
            state.closed = true;
            self.end_all(state, now, effects);
            effects.wakers.extend(state.cohorts.wakers());
        });
    }

    /// Name by name, so that nothing is handed to those who wait here themselves: first the names that are only held; then,
    /// of each other name, those who wait, and what is held at last. Cancelled from the ends of the queue inwards, each
    /// ticket is found at once.
    fn end_all(&self, state: &mut State, now: Instant, effects: &mut Effects) {
        let mut open: Vec<_> = state.open.iter().map(|(id, attempt)| (attempt.queued_at.unwrap_or(now), *id)).collect();
        open.sort_unstable();
        let mut holds: Vec<u64> = state.holds.keys().copied().collect();
        holds.sort_unstable();
        let mut names: Vec<(Vec<u64>, Vec<u64>)> = Vec::new();
        let mut index: HashMap<Arc<Keys>, usize> = HashMap::new();
        for (_, id) in open {
            let Some(keys) = state.open.get(&id).map(|attempt| attempt.keys.clone()) else { continue };
            let at = *index.entry(keys).or_insert(names.len());
            if at == names.len() {
                names.push(Default::default());
            }
            names[at].0.push(id);
        }
        for id in holds {
            match state.holds.get(&id).and_then(|hold| index.get(&hold.keys)) {
                Some(at) => names[*at].1.push(id),
                None => state.close_hold(id, now, effects),
            }
        }
        for (waiting, held) in names {
            let (older, younger) = waiting.split_at(waiting.len() / 2);
            for id in older {
                state.give_up_from(self.attempt_id(*id), false, now, effects);
            }
            for id in younger.iter().rev() {
                state.give_up_from(self.attempt_id(*id), true, now, effects);
            }
            for id in held {
                state.close_hold(id, now, effects);
            }
        }
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

    /// The watchdog is gone, with its runtime: nothing will be renewed, touched or cleaned up any more. Returns what is left
    /// in Redis, or may be.
    pub(crate) fn die(&self, now: Instant) -> Vec<Cleanup> {
        self.change(|state, effects| {
            state.closed = true;
            self.end_all(state, now, effects);
            effects.wakers.extend(state.cohorts.wakers());
            effects.idle = true;
            state.dead = true;
            let ending = std::mem::take(&mut state.ending_holds).into_values().map(|hold| Cleanup::of(&hold, now));
            ending.chain(state.cleanups.drain()).collect()
        })
    }

    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.state).closed
    }
}
