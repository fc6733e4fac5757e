//! What this client has asked for and what it holds, by attempt id. The engine sends nothing and reads no clock: time
//! comes in as an argument, and the watchdog asks what is to be sent.
//!
//! The engine decides every attempt id once: it becomes a hold, or it is given up. Whatever arrives about the attempt
//! id later finds no entry and is ignored.
//!
//! | state | becomes, on |
//! |---|---|
//! | open: sent, or waiting in a queue | a hold on `hold`; gone on `forget`, `abandon`, `close` |
//! | held | another guard's hold under the same attempt id on `hand_off`; gone on `release`, a loss, `close` |
//!
//! Each table changes by methods of its own; a handler borrows the tables that one change concerns. All tables are
//! behind one mutex, which [`api`] locks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use event_listener::Event;
use uuid::Uuid;

use crate::engine::inboxes::Inboxes;
use crate::engine::lease::Loss;
use crate::engine::state::{Effects, State};
use crate::mutex::lock;
use crate::observe;

pub(crate) mod ahead;
mod api;
pub(crate) mod attempt;
mod attempts;
pub(crate) mod cleanup;
pub(crate) mod cleanups;
mod closing;
pub(crate) mod confirmations;
mod ended;
mod handler;
mod heartbeats;
mod holds;
mod idles;
pub(crate) mod inboxes;
pub(crate) mod lease;
mod messages;
pub(crate) mod replica_waits;
pub(crate) mod schedule;
mod silence;
mod state;
pub(crate) mod turn;
pub(crate) mod work;

pub(crate) use state::Grant;

#[derive(Debug)]
pub(crate) struct Engine {
    state: Mutex<State>,
    /// Whether the client is closed, so that no attempt starts any more. Changed only while the tables are locked.
    closed: AtomicBool,
    /// Notified when the client is closed.
    closing: Event,
    /// Notified when the watchdog has something to do sooner than it expects.
    work: Event,
    /// Notified when the inboxes of more slots are to be opened.
    inboxes: Event,
    /// Notified when the last clean-up is done, and when a clean-up of a party is done.
    idle: Event,
    jitter: AtomicU64,
}

impl Engine {
    /// With `sharded`, the client has an additional inbox for each slot in which it waits.
    pub(crate) fn new(client: Uuid, sharded: bool) -> Self {
        let (seed, other) = client.as_u64_pair();
        Self {
            state: Mutex::new(State::new(client, Inboxes::new(sharded))),
            closed: AtomicBool::new(false),
            closing: Event::new(),
            work: Event::new(),
            inboxes: Event::new(),
            idle: Event::new(),
            jitter: AtomicU64::new(seed ^ other),
        }
    }

    /// Returns a seed that differs for each client and at each call.
    pub(crate) fn jitter_seed(&self) -> u64 {
        self.jitter.fetch_add(1, Ordering::Relaxed)
    }

    /// Locks the tables to read them. This has no effects to set off.
    fn look(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Locks and changes the tables, and sets off the effects of the change after they are unlocked.
    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.look();
        let result = change(&mut state);
        let effects = state.take_effects();
        drop(state);
        if let Some(effects) = effects {
            self.set_off(effects);
        }
        result
    }

    fn set_off(&self, effects: Effects) {
        let Effects { losses, wakers, work, inboxes, idle } = effects;
        for (hold, loss) in losses {
            if loss != Loss::Closed {
                observe::lost(&hold.keys.name, &loss, loss.word());
            }
            hold.notify_over();
        }
        wakers.wake();
        if work {
            self.work.notify(usize::MAX);
        }
        if inboxes {
            self.inboxes.notify(usize::MAX);
        }
        if idle {
            self.idle.notify(usize::MAX);
        }
    }
}

#[cfg(test)]
mod tests;
