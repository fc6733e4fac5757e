//! The part of the engine's interface that the readers of slots' inboxes use.

use std::time::Instant;

use event_listener::EventListener;

use crate::engine::Engine;
use crate::engine::inboxes::InboxWork;

impl Engine {
    /// The client has connected only now, and has one inbox more for each slot in which it waits.
    pub(crate) fn set_sharded(&self) {
        self.change(|state| state.attempts.inboxes.set_sharded());
    }

    /// To be listened to before [`inbox_work`](Self::inbox_work) is called.
    pub(crate) fn listen_inboxes(&self) -> EventListener {
        self.inboxes.listen()
    }

    /// Returns the slots whose inboxes are to be opened or closed.
    pub(crate) fn inbox_work(&self, now: Instant) -> InboxWork {
        self.change(|state| state.attempts.inboxes.work(now))
    }

    /// Called when messages about keys of the slot may have been missed. The engine asks the server about every ticket
    /// in the slot.
    pub(crate) fn slot_gap(&self, slot: u16, now: Instant) {
        self.change(|state| state.attempts.set_slot_gap(slot, now));
    }
}
