//! How many units of a hold are left when parts of it are given back.

use std::sync::atomic::{AtomicU32, Ordering};

/// The units that were not given back: those of living parts, and of kept ones.
#[derive(Debug)]
pub(crate) struct UnitsLeft {
    granted: u32,
    left: AtomicU32,
}

impl UnitsLeft {
    pub(super) fn new(granted: u32) -> Self {
        Self { granted, left: AtomicU32::new(granted) }
    }

    /// Ends a part. Returns how many units are left for the others. `None` if it was the last part: the hold ends with
    /// it.
    pub(crate) fn end(&self, units: u32) -> Option<u32> {
        let left = |all: u32| all.checked_sub(units).filter(|left| units > 0 && *left > 0);
        let before = self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, left).ok()?;
        Some(before - units)
    }

    /// The units that are left, if some were given back.
    pub(crate) fn rest(&self) -> Option<u32> {
        Some(self.left.load(Ordering::Acquire)).filter(|left| *left < self.granted)
    }
}
