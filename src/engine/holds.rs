//! What the client holds, and when each lease is renewed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::lease::{Hold, Loss, deadline};
use crate::engine::schedule::{Due, Schedule};
use crate::mutant::{self, Mutant};

#[derive(Debug)]
pub(super) struct Holds {
    held: HashMap<u64, Arc<Hold>>,
    schedule: Schedule,
    /// Losses to be signalled once the tables are unlocked.
    lost: Vec<(Arc<Hold>, Loss)>,
}

impl Holds {
    pub(super) fn new(schedule: Schedule) -> Self {
        Self { held: HashMap::new(), schedule, lost: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    pub(super) fn get(&self, n: u64) -> Option<&Arc<Hold>> {
        self.held.get(&n)
    }

    pub(super) fn is_held(&self, n: u64) -> bool {
        self.held.contains_key(&n)
    }

    /// Whether it is this very hold that has the attempt id, and not one before or after it.
    pub(super) fn is_current(&self, hold: &Arc<Hold>) -> bool {
        self.held.get(&hold.id.n).is_some_and(|held| Arc::ptr_eq(held, hold))
    }

    pub(super) fn numbers(&self) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.held.keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }

    /// Keeps the hold until `deadline`, with renewals as its term says.
    pub(super) fn insert(&mut self, hold: &Arc<Hold>, deadline: Instant, now: Instant) {
        self.held.insert(hold.id.n, hold.clone());
        self.schedule.insert(hold.id.n, now, deadline, hold.term.interval(hold.lease, deadline));
    }

    /// Keeps the hold until `deadline` without renewals. No member has looked at it yet, and a future that is never polled must
    /// not block others for ever.
    pub(super) fn insert_unrenewed(&mut self, hold: &Arc<Hold>, deadline: Instant, now: Instant) {
        self.held.insert(hold.id.n, hold.clone());
        self.schedule.remove(hold.id.n);
        self.schedule.insert(hold.id.n, now, deadline, None);
    }

    /// A member has looked at the hold, which is renewed from now on.
    pub(super) fn start_renewals(&mut self, hold: &Arc<Hold>, now: Instant) {
        if let Some(deadline) = hold.deadline().filter(|_| self.held.contains_key(&hold.id.n)) {
            self.schedule.remove(hold.id.n);
            self.insert(hold, deadline, now);
        }
    }

    pub(super) fn remove(&mut self, n: u64) -> Option<Arc<Hold>> {
        self.schedule.remove(n);
        self.held.remove(&n)
    }

    /// The loss is signalled once the tables are unlocked.
    pub(super) fn push_lost(&mut self, hold: &Arc<Hold>, loss: Loss) {
        self.lost.push((hold.clone(), loss));
    }

    /// The server answered a renewal sent at `sent`: these are held. Returns how many leases are longer now.
    pub(super) fn set_renewed(&mut self, held: &[Arc<Hold>], sent: Instant, now: Instant) -> u64 {
        let mut renewals = 0;
        // A hold may have been handed off meanwhile: the lease belongs to the attempt id.
        let held: Vec<_> = held.iter().map(|hold| self.held.get(&hold.id.n).unwrap_or(hold)).map(Arc::clone).collect();
        for hold in &held {
            let lease = hold.renewal(sent);
            if !lease.is_zero() {
                hold.extend(deadline(sent, lease), now);
                renewals += 1;
            }
        }
        let deadlines = held.iter().filter_map(|hold| Some((hold.id.n, hold.deadline()?)));
        self.schedule.renewed(deadlines, sent);
        for hold in held.iter().filter(|hold| hold.interval().is_none()) {
            self.schedule.renewed_last(hold.id.n);
        }
        renewals
    }

    /// The server extended the hold by a request sent at `sent`. Returns the loss if the hold was lost meanwhile.
    pub(super) fn set_extended(&mut self, hold: &Hold, lease: Duration, sent: Instant, now: Instant) -> Option<Loss> {
        if let Some(loss) = hold.loss(now) {
            return Some(loss);
        }
        hold.extend(deadline(sent, lease), now);
        if let Some(deadline) = hold.deadline() {
            self.schedule.lengthen(hold.id.n, deadline);
        }
        None
    }

    /// No answer came to a renewal of these.
    pub(super) fn set_unanswered(&mut self, holds: &[Arc<Hold>], now: Instant) {
        if mutant::on(Mutant::RenewalNotRetried) {
            return;
        }
        let ids: Vec<u64> = holds.iter().map(|hold| hold.id.n).collect();
        self.schedule.unanswered(&ids, now);
    }

    /// Messages may have been missed: the server is asked about every hold.
    pub(super) fn set_gap(&mut self, now: Instant) {
        if mutant::on(Mutant::NoVerifyAfterGap) {
            return;
        }
        self.schedule.verify_all(now);
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.schedule.next()
    }

    pub(super) fn due(&mut self, now: Instant) -> Due {
        self.schedule.due(now)
    }

    /// The losses since the last call.
    pub(super) fn take_lost(&mut self) -> Vec<(Arc<Hold>, Loss)> {
        std::mem::take(&mut self.lost)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.schedule.is_empty()
    }
}
