//! How far apart full batches of renewals are.

use std::time::{Duration, Instant};

use crate::mutant::{self, Mutant};
use crate::tuning::BATCH;

/// The checks of all fixed leases are spread over half of this.
pub(super) const LOOK: Duration = Duration::from_secs(2);

/// The pace of the last batch, if that was full: when it was sent, and how long after it the next one follows.
#[derive(Debug, Default)]
pub(super) struct Pace(Option<(Instant, Duration)>);

impl Pace {
    /// The earliest time of the next renewal call. The leases end at `deadline` at the earliest, and this many holds
    /// are due.
    pub(super) fn gate(&self, deadline: Option<Instant>, due: usize) -> Option<Instant> {
        let (last, pace) = self.0?;
        let Some(deadline) = deadline.filter(|_| !mutant::on(Mutant::TiesById)) else { return Some(last + pace) };
        let left = deadline.saturating_duration_since(last);
        Some(last + pace.min(left / 2 / batches(due)))
    }

    /// The next batch may be sent.
    pub(super) fn clear(&mut self) {
        self.0 = None;
    }

    /// Records that a full batch is sent `now`, of which the first hold has this interval. There are so many holds in
    /// all.
    pub(super) fn is_full(&mut self, now: Instant, interval: Option<Duration>, holds: usize) {
        self.0 = Some((now, interval.unwrap_or(LOOK) / 2 / batches(holds)));
    }
}

/// The number of calls that renew this many holds, at least one.
fn batches(holds: usize) -> u32 {
    u32::try_from(holds.div_ceil(BATCH)).unwrap_or(u32::MAX).max(1)
}
