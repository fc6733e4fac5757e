//! The parts of a hold of permits that was split.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::context::Context;
use crate::engine::lease::Hold;
use crate::mutant::{self, Mutant};

/// What the parts of one hold share. They do not keep the hold: the last guard of the hold ends it.
#[derive(Debug)]
pub(crate) struct Parts {
    context: Arc<Context>,
    hold: Arc<Hold>,
    /// The units that the server still has to count: those of living parts, and of kept ones.
    units: AtomicU32,
    /// Whether units were given back, so that the server has, or will have, fewer of them than were granted.
    is_smaller: AtomicBool,
}

/// One part: a number of units. It gives them back in the background when it is dropped, unless it is the last one, or
/// they were given back or kept before.
#[derive(Debug)]
pub(super) struct Part {
    parts: Arc<Parts>,
    units: AtomicU32,
}

impl Parts {
    pub(super) fn new(context: &Arc<Context>, hold: &Arc<Hold>) -> Self {
        Self {
            context: context.clone(),
            hold: hold.clone(),
            units: AtomicU32::new(hold.amount),
            is_smaller: AtomicBool::new(false),
        }
    }

    pub(super) fn is_smaller(&self) -> bool {
        self.is_smaller.load(Ordering::Acquire)
    }
}

impl Part {
    /// The whole, before it is split.
    pub(super) fn whole(parts: &Arc<Parts>) -> Self {
        Self { parts: parts.clone(), units: AtomicU32::new(parts.hold.amount) }
    }

    pub(super) fn units(&self) -> u32 {
        self.units.load(Ordering::Acquire)
    }

    /// Takes `units` out, fewer than the part has.
    pub(super) fn split(&self, units: u32) -> Self {
        self.units.fetch_sub(units, Ordering::AcqRel);
        Self { parts: self.parts.clone(), units: AtomicU32::new(units) }
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
        let units = self.units.swap(0, Ordering::AcqRel);
        let left = self.parts.units.fetch_sub(units, Ordering::AcqRel) - units;
        if units == 0 || left == 0 {
            return None;
        }
        // Before the guard of the part is gone, so that the last guard sees it.
        if !mutant::on(Mutant::SmallerHoldHandedOff) {
            self.parts.is_smaller.store(true, Ordering::Release);
        }
        Some(left)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let Some(left) = self.end() else { return };
        let Parts { context, hold, .. } = &*self.parts;
        let now = context.now();
        // After a loss, the engine has cleaned up.
        if hold.loss(now).is_none() {
            context.engine.give_back_later(hold, left, now);
        }
    }
}
