//! The parts of a hold of permits that was split.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::context::Context;
use crate::engine::lease::Hold;

/// One part: a number of units. It gives them back in the background when it is dropped, unless it is the last one, or
/// they were given back or kept before. It does not keep the hold: the last guard of the hold ends it.
#[derive(Debug)]
pub(super) struct Part {
    context: Arc<Context>,
    hold: Arc<Hold>,
    units: AtomicU32,
}

impl Part {
    /// The whole, before it is split.
    pub(super) fn whole(context: &Arc<Context>, hold: &Arc<Hold>) -> Self {
        Self { context: context.clone(), hold: hold.clone(), units: AtomicU32::new(hold.amount) }
    }

    pub(super) fn units(&self) -> u32 {
        self.units.load(Ordering::Acquire)
    }

    /// Takes `units` out, fewer than the part has.
    pub(super) fn split(&self, units: u32) -> Self {
        self.units.fetch_sub(units, Ordering::AcqRel);
        Self { context: self.context.clone(), hold: self.hold.clone(), units: AtomicU32::new(units) }
    }

    /// Adds the units of another part of the same hold.
    pub(super) fn merge(&self, other: &Self) {
        self.units.fetch_add(other.units.swap(0, Ordering::AcqRel), Ordering::AcqRel);
    }

    /// Lets the units stay in Redis.
    pub(super) fn keep(&self) {
        self.units.store(0, Ordering::Release);
    }

    /// Ends the part. Returns how many units the hold has left if it goes on, for the caller to give the others back.
    pub(super) fn end(&self) -> Option<u32> {
        // Before the guard of the part is gone, so that the last guard sees it.
        self.hold.units.end(self.units.swap(0, Ordering::AcqRel))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let Some(left) = self.end() else { return };
        let now = self.context.now();
        // After a loss, the engine has cleaned up.
        if self.hold.loss(now).is_none() {
            self.context.engine.give_back_later(&self.hold, left, now);
        }
    }
}
