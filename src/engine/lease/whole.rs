//! A hold that is a part of another one: the vote of one server for a hold that several servers grant together.

use std::fmt;
use std::sync::atomic::{Ordering, fence};
use std::sync::{OnceLock, Weak};

use crate::engine::lease::state::LeaseState;
use crate::engine::lease::{Hold, Loss};

/// A hold with parts.
pub(crate) trait Whole: fmt::Debug + Send + Sync {
    /// The client of a part is closed, and gives the part back before its lease ends. Called before that, with the
    /// client's tables locked: locks none of them, and wakes no task.
    fn part_closed(&self);
}

/// What a hold is a part of, if it is.
#[derive(Debug, Default)]
pub(super) struct PartOf(OnceLock<Weak<dyn Whole>>);

impl PartOf {
    pub(super) fn set(&self, whole: Weak<dyn Whole>) {
        let _ = self.0.set(whole);
        // The other thread closes the part and then looks for the whole. This one then looks at the part.
        fence(Ordering::SeqCst);
    }

    pub(super) fn tell_closed(&self) {
        fence(Ordering::SeqCst);
        if let Some(whole) = self.0.get().and_then(Weak::upgrade) {
            whole.part_closed();
        }
    }
}

impl Hold {
    /// Makes the hold a part of another one, which is told if the client of this one closes.
    pub(crate) fn set_part_of(&self, whole: Weak<dyn Whole>) {
        self.part_of.set(whole);
        if let LeaseState::Lost(Loss::Closed) = self.state.load() {
            self.part_of.tell_closed();
        }
    }
}
