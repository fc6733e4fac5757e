//! The life of a hold.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::Engine;
use crate::engine::cleanup::Cleanup;
use crate::engine::lease::{Hold, Loss};
use crate::engine::state::Grant;
use crate::observe;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::key::Keys;
use crate::stats::Stats;

impl Engine {
    /// Turns the attempt into a hold. `None`: the attempt was revoked, and is given up, or the client was closed
    /// meanwhile.
    pub(crate) fn grant(&self, id: AttemptId, grant: Grant, now: Instant) -> Option<Arc<Hold>> {
        // The waker is dropped while the tables are unlocked.
        let (_waker, hold) = self.change(|state| (state.attempts.stop_waiting(id), state.grant(id, grant, now)));
        hold
    }

    /// Like [`grant`](Self::grant), for a hold that waits for no replicas.
    #[cfg(test)]
    pub(crate) fn hold(
        &self,
        id: AttemptId,
        amount: u32,
        token: crate::protocol::token::Token,
        term: crate::engine::lease::Term,
        deadline: Instant,
        now: Instant,
    ) -> Option<Arc<Hold>> {
        self.grant(id, Grant { amount, token, term, deadline, replicas: 0, at_first: true }, now)
    }

    /// Ends the hold's renewals, because the caller is about to release it.
    pub(crate) fn release(&self, hold: &Hold, now: Instant) {
        self.change(|state| state.release(hold, now));
    }

    /// Forgets a hold that stays in Redis. `false`: it was lost, or the client was closed, and it is cleaned up.
    pub(crate) fn leave_in_redis(&self, hold: &Hold, now: Instant) -> bool {
        self.change(|state| state.hold_handler().end(hold.id.n, now))
    }

    /// Releases the hold in the background. If its lease has ended, and the watchdog has not noticed yet, that counts
    /// as a loss.
    pub(crate) fn release_later(&self, hold: &Hold, now: Instant) {
        self.change(|state| {
            let mut handler = state.hold_handler();
            match hold.loss(now) {
                Some(loss) => drop(handler.lose(hold.id.n, loss, now)),
                None => drop(handler.end(hold.id.n, now)),
            }
            state.cleanups.push(Cleanup::of(hold, now));
        });
    }

    /// Loses a hold that is not renewed any more, because its holder changes it.
    pub(crate) fn set_lost(&self, hold: &Hold, loss: Loss) {
        if hold.set_lost(loss) {
            self.count_loss(hold, loss);
            hold.notify_over();
        }
    }

    /// Counts and reports a loss that is found when its holder releases the hold.
    pub(crate) fn count_loss(&self, hold: &Hold, loss: Loss) {
        self.change(|state| state.stats.lost += 1);
        observe::lost(&hold.keys.name, &loss, loss.word());
    }

    /// Gives units of the hold back in the background, so that `rest` are left.
    pub(crate) fn give_back_later(&self, hold: &Arc<Hold>, rest: u32, now: Instant) {
        self.change(|state| state.cleanups.push(Cleanup::of_part(hold, rest, now)));
    }

    /// Records that the server extended the hold by a request sent at `sent`. Returns the loss if the hold was lost
    /// meanwhile.
    pub(crate) fn extended(&self, hold: &Hold, lease: Duration, sent: Instant, now: Instant) -> Option<Loss> {
        self.change(|state| state.holds.set_extended(hold, lease, sent, now))
    }

    /// Asks the server about the name again, because the script left more work than one call may do.
    pub(crate) fn promote_later(&self, keys: &Arc<Keys>, now: Instant, lease: Duration) {
        self.change(|state| {
            // No attempt has this id. Cancelling its ticket only promotes waiting tickets.
            let ticket = keys.kind.ticket(state.attempts.id(0), lease, 1);
            state.cleanups.push(Cleanup::new(keys.clone(), ticket, now + lease));
        });
    }

    /// Whether the client keeps the hold without using it. `None`: the hold is another client's.
    pub(crate) fn is_idle(&self, id: AttemptId) -> Option<bool> {
        let state = self.look();
        state.attempts.is_own(id).then(|| state.idles.is_idle(id.n))
    }

    /// All counters except that of reconnects, which the connection counts.
    pub(crate) fn stats(&self) -> Stats {
        let state = self.look();
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        // The waiting members of a cohort are counted, and the attempts of the cohort are not.
        let (waiting, tickets) = state.cohorts.all_waiting();
        let waiting = count((state.attempts.len() + waiting).saturating_sub(tickets + state.aheads.attempts()));
        Stats { held: count(state.holds.len() - state.idles.len()), waiting, ..state.stats }
    }
}
