//! The end of holds.

use std::sync::Arc;
use std::time::Instant;

use crate::cohort::id::CohortId;
use crate::cohort::table::Cohorts;
use crate::engine::cleanup::Cleanup;
use crate::engine::handler::handoff::Assets;
use crate::engine::lease::{Hold, Loss};
use crate::engine::turn::Given;
use crate::mutant::{self, Mutant};
use crate::stats::Stats;

pub(in crate::engine) struct HoldHandler<'a> {
    pub(in crate::engine) cohorts: &'a mut Cohorts<Given>,
    pub(in crate::engine) assets: Assets<'a>,
    pub(in crate::engine) stats: &'a mut Stats,
}

impl HoldHandler<'_> {
    /// Ends the hold, and removes it from its cohort if it has one. `false`: it was over already.
    pub(in crate::engine) fn end(&mut self, n: u64, now: Instant) -> bool {
        let ended = self.assets.holds.remove(n);
        if let Some(hold) = &ended {
            self.leave_cohort(hold, now);
        }
        ended.is_some()
    }

    fn leave_cohort(&mut self, hold: &Hold, now: Instant) {
        self.cohorts.change(&CohortId::of(&hold.keys, hold.amount), |cohort| {
            cohort.end_hold(hold.id.n);
            self.assets.end_ahead(cohort, hold.id.n, now);
        });
        // Others may have asked for it since the cohort was gone.
        self.assets.idles.end(hold.id.n);
    }

    /// Ends the hold because the client is closed.
    pub(in crate::engine) fn close(&mut self, n: u64, now: Instant) {
        if self.assets.idles.is_idle(n) && mutant::on(Mutant::IdleHoldLeft) {
            return;
        }
        if let Some(hold) = self.lose(n, Loss::Closed, now) {
            self.assets.cleanups.push(Cleanup::of(&hold, now));
        }
    }

    /// Loses the hold, if it exists, and removes it from Redis. It may still be there because of a late renewal, or
    /// because a server that had lost data comes back.
    pub(in crate::engine) fn lose_and_clean_up(&mut self, n: u64, loss: Loss, now: Instant) {
        let Some(hold) = self.lose(n, loss, now) else { return };
        if mutant::on(Mutant::NoCleanUpOnExpiry) {
            return;
        }
        self.assets.cleanups.push(Cleanup::of(&hold, now));
    }

    /// Loses the hold, if it exists. Its holder is told.
    pub(in crate::engine) fn lose(&mut self, n: u64, loss: Loss, now: Instant) -> Option<Arc<Hold>> {
        let hold = self.assets.holds.remove(n)?;
        // An idle hold has no guard that could be told.
        let is_idle = self.assets.idles.is_idle(n);
        if !mutant::on(Mutant::LostHoldKeepsTheCohort) {
            self.leave_cohort(&hold, now);
        }
        // While the tables are locked: another thread that no longer finds the hold there must not see it as valid.
        hold.set_lost(loss);
        // A holder that is releasing it learns from the answer that it is gone.
        if !is_idle && hold.loss(now).is_some() {
            self.stats.lost += u64::from(loss != Loss::Closed);
            self.assets.holds.push_lost(&hold, loss);
        }
        Some(hold)
    }

    /// Handles the answer to a renewal sent at `sent`.
    pub(in crate::engine) fn set_renewed(
        &mut self,
        sent: Instant,
        now: Instant,
        held: &[Arc<Hold>],
        gone: &[Arc<Hold>],
    ) {
        self.stats.renewals += self.assets.holds.set_renewed(held, sent, now);
        if mutant::on(Mutant::LossNotSignalled) {
            return;
        }
        for hold in gone {
            // The server that answered may know less than the server that comes back later.
            self.lose_and_clean_up(hold.id.n, Loss::Gone, now);
        }
    }
}
