//! Holds that end.

use std::sync::Arc;
use std::time::Instant;

use crate::cohort::id::CohortId;
use crate::cohort::table::Cohorts;
use crate::engine::cleanups::{Cleanup, Cleanups};
use crate::engine::holds::Holds;
use crate::engine::lease::{Hold, Loss};
use crate::engine::turn::Given;
use crate::mutant::{self, Mutant};
use crate::stats::Stats;

pub(in crate::engine) struct HoldHandler<'a> {
    pub(in crate::engine) holds: &'a mut Holds,
    pub(in crate::engine) cohorts: &'a mut Cohorts<Given>,
    pub(in crate::engine) cleanups: &'a mut Cleanups,
    pub(in crate::engine) stats: &'a mut Stats,
}

impl HoldHandler<'_> {
    /// Removes the hold from its cohort, too.
    pub(in crate::engine) fn end(&mut self, n: u64) -> Option<Arc<Hold>> {
        let hold = self.holds.remove(n)?;
        self.cohorts.end_hold(&CohortId::of(&hold.keys, hold.amount), n);
        Some(hold)
    }

    /// The client is closed, and its hold with it.
    pub(in crate::engine) fn close(&mut self, n: u64, now: Instant) {
        if let Some(hold) = self.lose(n, Loss::Closed) {
            self.cleanups.push(Cleanup::of(&hold, now));
        }
    }

    /// The hold, if there is one, is lost. A late renewal, or a server that has lost data and comes back, may have left it in
    /// Redis, so it is cleaned up.
    pub(in crate::engine) fn lose_and_clean_up(&mut self, n: u64, loss: Loss, now: Instant) {
        let Some(hold) = self.lose(n, loss) else { return };
        if mutant::on(Mutant::NoCleanUpOnExpiry) {
            return;
        }
        self.cleanups.push(Cleanup::of(&hold, now));
    }

    fn lose(&mut self, n: u64, loss: Loss) -> Option<Arc<Hold>> {
        let hold = self.holds.remove(n)?;
        if !mutant::on(Mutant::LostHoldKeepsTheCohort) {
            self.cohorts.end_hold(&CohortId::of(&hold.keys, hold.amount), n);
        }
        self.stats.lost += u64::from(loss != Loss::Closed);
        self.holds.push_lost(&hold, loss);
        Some(hold)
    }

    /// The server answered a renewal sent at `sent`.
    pub(in crate::engine) fn set_renewed(
        &mut self,
        sent: Instant,
        now: Instant,
        held: &[Arc<Hold>],
        gone: &[Arc<Hold>],
    ) {
        self.stats.renewals += self.holds.set_renewed(held, sent, now);
        if mutant::on(Mutant::LossNotSignalled) {
            return;
        }
        for hold in gone {
            // The server that answered may know less than the one that comes back.
            self.lose_and_clean_up(hold.id.n, Loss::Gone, now);
        }
    }
}
