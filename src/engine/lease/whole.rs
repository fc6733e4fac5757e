//! A hold that is a part of another one: the vote of one server for a hold that several servers grant together.

use std::fmt;
use std::sync::atomic::{Ordering, fence};
use std::sync::{OnceLock, Weak};

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
