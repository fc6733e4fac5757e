//! The holds of the client, and when each lease is renewed.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::engine::lease::{Hold, Loss, deadline};
use crate::engine::schedule::{Due, Schedule};
use crate::mutant::{self, Mutant};
use crate::protocol::token::Token;

#[derive(Debug)]
struct Held {
    hold: Arc<Hold>,
    watch: Watch,
}

/// Whether the hold is renewed. A hold that was handed off is not renewed until its new owner looks at it, because a
/// future that is never polled must not block others for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watch {
    Renewed,
    /// The new owner has not looked at the hold yet. The hold keeps its entry in the schedule, because most owners look
    /// at once.
    Unseen,
    /// Like `Unseen`, and a renewal or a check after a gap has come due since.
    Suspended,
}

#[derive(Debug)]
pub(super) struct Holds {
    held: FxHashMap<u64, Held>,
    schedule: Schedule,
    /// Losses to signal after the tables are unlocked.
    lost: Vec<(Arc<Hold>, Loss)>,
}

impl Holds {
    pub(super) fn new(schedule: Schedule) -> Self {
        Self { held: FxHashMap::default(), schedule, lost: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    pub(super) fn get(&self, n: u64) -> Option<&Arc<Hold>> {
        self.held.get(&n).map(|held| &held.hold)
    }

    pub(super) fn is_held(&self, n: u64) -> bool {
        self.held.contains_key(&n)
    }

    /// Whether this hold is the current one of its attempt id, and not an earlier or later one.
    pub(super) fn is_current(&self, hold: &Arc<Hold>) -> bool {
        self.held.get(&hold.id.n).is_some_and(|held| Arc::ptr_eq(&held.hold, hold))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Hold>> {
        self.held.values().map(|held| &held.hold)
    }

    pub(super) fn numbers(&self) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.held.keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }

    /// Those that are retained, used or idle.
    pub(super) fn retained(&self) -> Vec<u64> {
        self.held.values().filter(|held| held.hold.id.is_retained()).map(|held| held.hold.id.n).collect()
    }

    /// Keeps the hold until `deadline`, with the renewals of its term.
    pub(super) fn insert(&mut self, hold: &Arc<Hold>, deadline: Instant, now: Instant) {
        self.insert_as(Watch::Renewed, hold, deadline, now);
    }

    fn insert_as(&mut self, watch: Watch, hold: &Arc<Hold>, deadline: Instant, now: Instant) {
        self.held.insert(hold.id.n, Held { hold: hold.clone(), watch });
        self.schedule.insert(hold.id.n, now, deadline, hold.term.interval(hold.lease, deadline));
    }

    /// Takes the hold from its last guard, and returns the next guard's hold. That is not renewed until its owner has
    /// looked at it. `None`: the hold was lost, or no more than `least` of its lease is left. See [`Hold::succeed`].
    pub(super) fn pass_on(
        &mut self,
        hold: &mut Arc<Hold>,
        least: Duration,
        token: Option<Token>,
        now: Instant,
    ) -> Option<Arc<Hold>> {
        let Some(held) = self.held.get_mut(&hold.id.n) else {
            let (successor, deadline) = hold.succeed(now, least, token)?;
            let successor = Arc::new(successor);
            self.insert_as(Watch::Unseen, &successor, deadline, now);
            return Some(successor);
        };
        // Two references are the least: this table's, and that of the last guard, which is borrowed mutably and so
        // cannot be cloned now. Without a third one, no other code sees the hold, and it can be changed in place.
        if Arc::strong_count(hold) == 2 && Arc::ptr_eq(&held.hold, hold) {
            // What others did with the references that they had comes before.
            fence(Ordering::Acquire);
            hold.pass_on(now, least, token)?;
        } else {
            let (successor, _) = hold.succeed(now, least, token)?;
            held.hold = Arc::new(successor);
        }
        if held.watch == Watch::Renewed {
            held.watch = Watch::Unseen;
        }
        Some(held.hold.clone())
    }

    /// Called when the owner has looked at the hold. It is renewed from now on, and at once if a renewal came due
    /// meanwhile.
    pub(super) fn start_renewals(&mut self, hold: &Arc<Hold>, now: Instant) {
        let Some(held) = self.held.get_mut(&hold.id.n) else { return };
        let was = std::mem::replace(&mut held.watch, Watch::Renewed);
        if was == Watch::Suspended
            && let Some(deadline) = hold.deadline()
        {
            self.schedule.insert_due(hold.id.n, now, deadline, hold.term.interval(hold.lease, deadline));
        }
    }

    /// Returns those of the due holds that are to be renewed. Holds whose owner has not looked at them are left to
    /// expire.
    pub(super) fn renewable(&mut self, due: Vec<u64>, now: Instant) -> Vec<Arc<Hold>> {
        let mut renewable = Vec::with_capacity(due.len());
        for n in due {
            let Some(Held { hold, watch }) = self.held.get_mut(&n) else { continue };
            if *watch == Watch::Renewed {
                renewable.push(hold.clone());
            } else if let Some(deadline) = hold.deadline() {
                *watch = Watch::Suspended;
                self.schedule.insert(n, now, deadline, None);
            }
        }
        renewable
    }

    pub(super) fn remove(&mut self, n: u64) -> Option<Arc<Hold>> {
        self.schedule.remove(n);
        self.held.remove(&n).map(|held| held.hold)
    }

    /// Has the waiters of a lost hold woken after the tables are unlocked.
    pub(super) fn push_lost(&mut self, hold: &Arc<Hold>, loss: Loss) {
        self.lost.push((hold.clone(), loss));
    }

    /// Records the answer to a renewal sent at `sent`: the server has the holds `held`. Returns how many leases became
    /// longer.
    pub(super) fn set_renewed(&mut self, held: &[Arc<Hold>], sent: Instant, now: Instant) -> u64 {
        let mut renewals = 0;
        // The hold may have been handed off meanwhile. The lease belongs to the attempt id, so its present hold gets
        // it.
        let held: Vec<_> = held.iter().map(|hold| self.get(hold.id.n).unwrap_or(hold)).map(Arc::clone).collect();
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

    /// Records that the server extended the hold by a request sent at `sent`. Returns the loss if the hold was lost
    /// meanwhile.
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

    /// Records that a renewal of these holds got no answer.
    pub(super) fn set_unanswered(&mut self, holds: &[Arc<Hold>], now: Instant) {
        if mutant::on(Mutant::RenewalNotRetried) {
            return;
        }
        let ids: Vec<u64> = holds.iter().map(|hold| hold.id.n).collect();
        self.schedule.unanswered(&ids, now);
    }

    /// Makes the watchdog ask the server about every hold, because messages may have been missed.
    pub(super) fn set_gap(&mut self, now: Instant) {
        if mutant::on(Mutant::NoVerifyAfterGap) {
            return;
        }
        self.schedule.verify_all(now);
    }

    /// Makes the watchdog ask the server about the hold.
    pub(super) fn verify(&mut self, n: u64, now: Instant) {
        self.schedule.verify(n, now);
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.schedule.next()
    }

    /// See [`Schedule::take_changed`].
    pub(super) fn take_rescheduled(&mut self) -> bool {
        self.schedule.take_changed()
    }

    pub(super) fn due(&mut self, now: Instant) -> Due {
        self.schedule.due(now)
    }

    pub(super) fn is_any_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Takes the losses since the last call.
    pub(super) fn take_lost(&mut self) -> Vec<(Arc<Hold>, Loss)> {
        std::mem::take(&mut self.lost)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.schedule.is_empty()
    }
}
