//! A stream that is dialled before there is a use for it.

use std::sync::{Arc, Mutex};

use event_listener::Event;

use super::super::url::target::Target;
use super::Stream;
use crate::mutex::lock;
use crate::until::until;

/// A stream to this server, on which nothing has been sent yet.
pub(in crate::redis) type Open = (Arc<Target>, Stream);

/// At most one stream, for the first who takes it.
#[derive(Default)]
pub(in crate::redis) struct Ahead {
    state: Mutex<State>,
    changed: Event,
}

#[derive(Default)]
enum State {
    #[default]
    Nothing,
    Dialling,
    Open(Open),
}

impl Ahead {
    /// From now on, those who take it wait.
    pub(in crate::redis) fn begin(&self) {
        *lock(&self.state) = State::Dialling;
    }

    /// Ends the wait. `None`: the stream could not be opened.
    pub(in crate::redis) fn end(&self, open: Option<Open>) {
        *lock(&self.state) = open.map_or(State::Nothing, State::Open);
        self.changed.notify(usize::MAX);
    }

    /// The stream, once it is open. `None`: none is dialled, another one has it, or it could not be opened.
    pub(in crate::redis) async fn take(&self) -> Option<Open> {
        let taken = || {
            let mut state = lock(&self.state);
            match std::mem::take(&mut *state) {
                State::Nothing => Some(None),
                State::Open(open) => Some(Some(open)),
                State::Dialling => {
                    *state = State::Dialling;
                    None
                }
            }
        };
        let taken = until(&self.changed, taken).await;
        self.changed.notify(usize::MAX);
        taken
    }

    /// Resolves when there is no stream to take any more.
    pub(in crate::redis) async fn gone(&self) {
        until(&self.changed, || (!matches!(*lock(&self.state), State::Open(_))).then_some(())).await;
    }
}
