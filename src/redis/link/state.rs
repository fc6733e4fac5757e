//! The state of the connection that carries commands.
//!
//! | state | what calls do | left by |
//! |---|---|---|
//! | down | wait | the supervisor, once a connection is logged in |
//! | up | are handed to the driver | the driver's end; a call that got no answer in time; an answer that only a replica gives |
//! | closed | fail | never |

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ::redis::aio::MultiplexedConnection;
use event_listener::Event;

use super::super::failure::Failure;
use super::super::url::target::Target;
use super::loaded::Loaded;
use crate::mutex::lock;
use crate::until::until;

pub(super) enum LinkState {
    /// The last failure: the end of the connection, or later the failure of the last attempt to reconnect.
    Down(Failure),
    Up(Up),
    Closed,
}

/// A connection that commands can be handed to.
#[derive(Clone)]
pub(in super::super) struct Up {
    /// Distinguishes successive connections, counted from 1.
    pub(in super::super) generation: u64,
    /// The server that it leads to.
    pub(in super::super) server: Arc<Target>,
    pub(in super::super) connection: MultiplexedConnection,
    pub(in super::super) loaded: Arc<Loaded>,
}

/// A state that can be waited for.
pub(super) struct StateCell {
    state: Mutex<LinkState>,
    /// A copy that is read without the lock: the generation of the connection that calls are handed to. 0 if there is
    /// none.
    pub(super) current: AtomicU64,
    changed: Event,
}

impl StateCell {
    pub(super) fn new() -> Self {
        let state = Mutex::new(LinkState::Down(Failure::Io("connecting".to_owned())));
        Self { state, current: AtomicU64::new(0), changed: Event::new() }
    }

    pub(super) fn read<T>(&self, read: impl FnOnce(&LinkState) -> T) -> T {
        read(&lock(&self.state))
    }

    pub(super) async fn until<T>(&self, found: impl Fn(&LinkState) -> Option<T>) -> T {
        until(&self.changed, move || self.read(&found)).await
    }

    /// Changes the state. The closed state is final.
    pub(super) fn change(&self, to: impl FnOnce(&LinkState) -> Option<LinkState>) {
        let mut state = lock(&self.state);
        let new = if matches!(*state, LinkState::Closed) { None } else { to(&state) };
        if let Some(new) = new {
            let generation = if let LinkState::Up(up) = &new { up.generation } else { 0 };
            self.current.store(generation, Ordering::SeqCst);
            let old = std::mem::replace(&mut *state, new);
            drop(state);
            drop(old);
            self.changed.notify(usize::MAX);
        }
    }
}
