//! The requests that the watchdog has to send, and the effects of the answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cohort::id::CohortId;
use crate::engine::ahead::Ask;
use crate::engine::cleanup::Cleanup;
use crate::engine::lease::{Hold, Loss};
use crate::engine::state::State;
use crate::protocol::dispatch::Failure;
use crate::protocol::key::Keys;
use crate::protocol::ticket::Ticket;

/// Requests that the watchdog has to send now.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) renew: Vec<Arc<Hold>>,
    pub(crate) heartbeat: Vec<Heartbeat>,
    /// Clean-ups, each with its number for [`Engine::cleanup_done`](crate::engine::Engine::cleanup_done).
    pub(crate) cleanups: Vec<(u64, Cleanup)>,
    /// Holds whose grants wait for replicas.
    pub(crate) confirm: Vec<Arc<Hold>>,
    /// Requests for the next hand-off budget of a cohort.
    pub(crate) ahead: Vec<Ask>,
    /// Whether heartbeats or clean-ups are due that may not begin before others have ended.
    pub(crate) is_capped: bool,
    /// When to ask for work again.
    pub(crate) next: Option<Instant>,
    /// Whether the watchdog has nothing left to do and can end.
    pub(crate) ended: bool,
}

/// Tickets of one name to keep alive, each with the number of its attempt.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    pub(crate) keys: Arc<Keys>,
    pub(crate) tickets: Vec<(u64, Ticket)>,
    /// If the one before got no answer: for how long this one may be waited for, and why that one failed.
    pub(crate) last: Option<(Duration, Failure)>,
}

impl State {
    pub(super) fn work(&mut self, now: Instant) -> Work {
        let due = self.holds.due(now);
        for n in due.expired {
            // A renewal whose answer was late or lost may have kept the hold in Redis.
            self.hold_handler().lose_and_clean_up(n, Loss::Expired, now);
        }
        for n in self.idles.due(now) {
            self.handoff_handler().release_idle(n, now);
        }
        let renew = self.holds.renewable(due.renew, now);
        let heartbeat = std::iter::from_fn(|| self.next_heartbeat(now)).collect();
        let cleanups = self.cleanups.start();
        let is_capped = self.attempts.heartbeats.is_capped(now) || self.cleanups.is_capped();
        let confirm = self.confirmations.start();
        let mut ahead = self.aheads.start();
        for ask in ahead.iter_mut().filter(|ask| ask.attempt.is_none()) {
            let own = self.cohorts.queued(&CohortId::of(&ask.keys, ask.amount)).iter();
            ask.set_own(own.filter_map(|id| Some(self.attempts.get(id.n)?.ticket(*id))));
        }
        // A timer stays set even if its reason is gone by now. Otherwise the watchdog would be woken for each of many
        // holds that come and go one after the other.
        let next = self.next().or(self.armed.filter(|armed| *armed > now));
        self.armed = next;
        let ended = self.is_ending && self.cleanups.is_idle();
        Work { renew, heartbeat, cleanups, confirm, ahead, is_capped, next, ended }
    }

    fn next_heartbeat(&mut self, now: Instant) -> Option<Heartbeat> {
        let (keys, ids) = self.attempts.heartbeats.due(now)?;
        let (mut tickets, mut first) = (Vec::with_capacity(ids.len()), None);
        for n in ids {
            let Some(attempt) = self.attempts.get(n) else { continue };
            tickets.push((n, attempt.ticket(self.attempts.id(n))));
            let unanswered = attempt.unanswered.as_deref();
            first = first.into_iter().chain(unanswered).min_by_key(|unanswered| unanswered.give_up);
        }
        let last = first.map(|first| (first.give_up.saturating_duration_since(now), first.last.clone()));
        Some(Heartbeat { tickets, last, keys })
    }
}
