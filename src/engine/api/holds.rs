//! The life of a hold.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::Engine;
use crate::engine::cleanups::Cleanup;
use crate::engine::lease::{Hold, Loss};
use crate::engine::state::Grant;
use crate::mutant::{self, Mutant};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::key::Keys;
use crate::stats::Stats;

impl Engine {
    /// Decides the attempt: it is a hold from now on. `None`: it was revoked, or the client was closed meanwhile.
    pub(crate) fn grant(&self, id: AttemptId, grant: Grant, now: Instant) -> Option<Arc<Hold>> {
        self.change(|state| state.grant(id, grant, now))
    }

    /// As [`grant`](Self::grant), without replicas to wait for.
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
        self.grant(id, Grant { amount, token, term, deadline, replicas: 0 }, now)
    }

    /// The caller is about to release the hold, which is not renewed any more.
    pub(crate) fn release(&self, hold: &Hold) {
        if mutant::on(Mutant::RenewalAfterRelease) {
            return;
        }
        self.change(|state| state.hold_handler().end(hold.id.n));
    }

    /// Releases the hold in the background.
    pub(crate) fn release_later(&self, hold: &Hold, now: Instant) {
        self.change(|state| {
            state.hold_handler().end(hold.id.n);
            state.cleanups.push(Cleanup::of(hold, now));
        });
    }

    /// The server extended the hold by a request sent at `sent`. Returns the loss if the hold was lost meanwhile.
    pub(crate) fn extended(&self, hold: &Hold, lease: Duration, sent: Instant, now: Instant) -> Option<Loss> {
        self.change(|state| state.holds.set_extended(hold, lease, sent, now))
    }

    /// Asks the server about a name again, because a script had more to do than one call may.
    pub(crate) fn promote_later(&self, keys: &Arc<Keys>, now: Instant, lease: Duration) {
        self.change(|state| {
            // No attempt has this id: cancelling its ticket promotes others, and changes nothing else.
            let ticket = keys.kind.ticket(state.attempts.id(0), lease, 1);
            state.cleanups.push(Cleanup { keys: keys.clone(), ticket, from_tail: false, until: now + lease });
        });
    }

    /// All counters but the reconnects.
    pub(crate) fn stats(&self) -> Stats {
        let state = self.look();
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        // The waiting members of a cohort count, and its tickets do not.
        let (waiting, tickets) = state.cohorts.all_waiting();
        let waiting = count((state.attempts.len() + waiting).saturating_sub(tickets));
        Stats { held: count(state.holds.len()), waiting, ..state.stats }
    }
}
