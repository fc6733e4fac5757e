//! A hold that becomes a part of another one.

use std::sync::Weak;

use crate::engine::lease::state::LeaseState;
use crate::engine::lease::{Hold, Loss, Whole};

impl Hold {
    /// Makes the hold a part of another one, which is told if the client of this one closes.
    pub(crate) fn set_part_of(&self, whole: Weak<dyn Whole>) {
        self.part_of.set(whole);
        if let LeaseState::Lost(Loss::Closed) = self.state.load() {
            self.part_of.tell_closed();
            self.part_of.let_go();
        }
    }
}
