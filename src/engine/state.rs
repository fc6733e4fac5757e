//! The tables of the engine, and the effects of changing them.

use std::sync::Arc;
use std::time::Instant;

use uuid::Uuid;

use crate::cohort::id::CohortId;
use crate::cohort::table::Cohorts;
use crate::engine::ahead::{Ahead, Aheads};
use crate::engine::attempt::Attempt;
use crate::engine::attempts::Attempts;
use crate::engine::cleanup::Cleanup;
use crate::engine::cleanups::Cleanups;
use crate::engine::confirmations::Confirmations;
use crate::engine::handler::attempt::AttemptHandler;
use crate::engine::handler::handoff::{Assets, HandoffHandler};
use crate::engine::handler::hold::HoldHandler;
use crate::engine::heartbeats::Heartbeats;
use crate::engine::holds::Holds;
use crate::engine::idles::Idles;
use crate::engine::inboxes::Inboxes;
use crate::engine::lease::{Hold, Loss, Term};
use crate::engine::schedule::{Schedule, sooner};
use crate::engine::turn::Given;
use crate::jitter::Jitter;
use crate::mutant::{self, Mutant};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::token::Token;
use crate::stats::Stats;
use crate::wakers::Wakers;

#[derive(Debug)]
pub(super) struct State {
    pub(super) attempts: Attempts,
    pub(super) holds: Holds,
    pub(super) cohorts: Cohorts<Given>,
    pub(super) cleanups: Cleanups,
    pub(super) confirmations: Confirmations,
    pub(super) aheads: Aheads,
    pub(super) idles: Idles,
    /// The counters that the tables cannot derive.
    pub(super) stats: Stats,
    /// The time for which the watchdog has set its timer.
    pub(super) armed: Option<Instant>,
    /// Whether the watchdog ends once nothing is left to clean up.
    pub(super) is_ending: bool,
}

/// The effects of a change of the tables. They are set off after the tables are unlocked, because wakers and events run
/// foreign code.
#[derive(Debug)]
pub(super) struct Effects {
    pub(super) losses: Vec<(Arc<Hold>, Loss)>,
    pub(super) wakers: Wakers,
    /// Whether the watchdog has something to do sooner than it expects.
    pub(super) work: bool,
    /// Whether there are slots whose inboxes are to be opened.
    pub(super) inboxes: bool,
    /// Whether the last clean-up is done.
    pub(super) idle: bool,
}

/// The parts of a grant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    pub(crate) amount: u32,
    pub(crate) token: Token,
    pub(crate) term: Term,
    pub(crate) deadline: Instant,
    /// See [`Hold::replicas`].
    pub(crate) replicas: u32,
    /// Whether the first request about the attempt was answered. A later one may have found what was granted from the
    /// queue.
    pub(crate) at_first: bool,
}

impl State {
    pub(super) fn new(client: Uuid, inboxes: Inboxes) -> Self {
        let (seed, other) = client.as_u64_pair();
        Self {
            attempts: Attempts::new(client, Heartbeats::new(Jitter::new(other)), inboxes),
            holds: Holds::new(Schedule::new(Jitter::new(seed))),
            cohorts: Cohorts::new(),
            cleanups: Cleanups::default(),
            confirmations: Confirmations::default(),
            aheads: Aheads::default(),
            idles: Idles::default(),
            stats: Stats::default(),
            armed: None,
            is_ending: false,
        }
    }

    pub(super) fn attempt_handler(&mut self) -> AttemptHandler<'_> {
        AttemptHandler { attempts: &mut self.attempts, cleanups: &mut self.cleanups }
    }

    pub(super) fn hold_handler(&mut self) -> HoldHandler<'_> {
        let Self { attempts, holds, cohorts, cleanups, aheads, idles, stats, .. } = self;
        HoldHandler { cohorts, assets: Assets { attempts, holds, cleanups, aheads, idles }, stats }
    }

    pub(super) fn handoff_handler(&mut self) -> HandoffHandler<'_> {
        let Self { attempts, holds, cohorts, cleanups, aheads, idles, .. } = self;
        HandoffHandler { cohorts, assets: Assets { attempts, holds, cleanups, aheads, idles } }
    }

    /// Whether the cohort has a hold that no member uses.
    pub(super) fn has_idle(&self, cohort: &CohortId) -> bool {
        !self.idles.is_none_idle() && self.cohorts.one_held(cohort).is_some_and(|n| self.idles.is_idle(n))
    }

    pub(super) fn open(&mut self, attempt: Attempt) -> AttemptId {
        self.attempts.open(attempt, |n| self.holds.is_held(n))
    }

    /// Turns the attempt into a hold. `None`: the attempt was revoked, or the client was closed meanwhile. The server
    /// may have granted a revoked attempt anew, so it is given up.
    pub(super) fn grant(&mut self, id: AttemptId, grant: Grant, now: Instant) -> Option<Arc<Hold>> {
        let mut attempt = self.attempts.remove(id.n)?;
        if let Some(before) = attempt.before.take() {
            // The request of the attempt has ended it, at this time or later.
            self.cleanups.set_ended(&before, attempt.counted_from);
        }
        if attempt.revoked && !mutant::on(Mutant::RevokedGrantHeld) {
            self.cleanups.push(attempt.into_cleanup(id, false, now));
            return None;
        }
        let Attempt { keys, lease, member, queued_at, wanted, is_asked_for, .. } = attempt;
        let Grant { amount, token, term, deadline, replicas, at_first } = grant;
        let cohort = member.map(|member| (CohortId::of(&keys, amount), member));
        let hold = Hold::new(keys, id, amount, token, lease, term, deadline);
        let hold = Arc::new(hold.acknowledged_by(replicas).sent_again(!at_first));
        if is_asked_for {
            hold.set_asked_to_release();
        }
        if queued_at.is_some() {
            // Beside a queue, a hold is stored in full.
            hold.set_in_full();
        }
        // A grant that waits for replicas is counted when they have acknowledged it.
        self.stats.acquired += u64::from(replicas == 0);
        self.holds.insert(&hold, deadline, now);
        if let Some((cohort, member)) = cohort {
            self.cohorts.set_held(&cohort, member, id.n);
            self.handoff_handler().release_parked(&cohort, now);
            if queued_at.is_some() && cohort.is_exclusive() {
                self.aheads.set(id.n, Ahead::Refused);
            }
            if id.is_retained() && (wanted || !at_first) && !mutant::on(Mutant::QueuedGrantKept) {
                self.idles.set_wanted(id.n);
            }
        }
        Some(hold)
    }

    /// The caller is about to release the hold, which is not renewed any more.
    pub(super) fn release(&mut self, hold: &Hold, now: Instant) {
        if !mutant::on(Mutant::RenewalAfterRelease) {
            self.hold_handler().end(hold.id.n, now);
        }
    }

    /// The server may be another one than before, and have holds with units that were given back.
    pub(super) fn give_back_again(&mut self, now: Instant) {
        let of_part = |hold: &Arc<Hold>| Some(Cleanup::of_part(hold, hold.units.rest()?, now));
        let parts: Vec<Cleanup> = self.holds.all().filter_map(of_part).collect();
        parts.into_iter().for_each(|part| self.cleanups.push(part));
    }

    /// When the watchdog has something to do next.
    pub(super) fn next(&self) -> Option<Instant> {
        sooner(sooner(self.holds.next(), self.attempts.heartbeats.next()), self.idles.next())
    }

    /// Whether the watchdog has something to do sooner than it expects.
    fn arm(&mut self) -> bool {
        // Most hand-offs change neither the schedule nor the heartbeats, and computing the next time is costly.
        let is_changed = self.holds.take_rescheduled() | self.attempts.heartbeats.take_changed();
        let ends_sooner = self.idles.next().is_some_and(|next| self.armed.is_none_or(|armed| next < armed));
        if !is_changed && !ends_sooner {
            return false;
        }
        let Some(next) = self.next() else { return false };
        let is_sooner = self.armed.is_none_or(|armed| next < armed);
        if is_sooner {
            self.armed = Some(next);
        }
        is_sooner
    }

    /// Takes the effects of the last change. `None` if it had none.
    pub(super) fn take_effects(&mut self) -> Option<Effects> {
        let idle = self.cleanups.take_idle();
        let mut work = self.cleanups.take_added() || (idle && self.is_ending);
        work |= self.confirmations.is_added() || self.aheads.is_added();
        work |= self.arm();
        let inboxes = self.attempts.inboxes.is_added();
        let Self { holds, attempts, cohorts, confirmations, .. } = self;
        let mut woken = [cohorts.woken(), attempts.woken(), confirmations.woken()];
        if !(idle || work || inboxes || holds.is_any_lost()) && woken.iter().all(|wakers| wakers.is_empty()) {
            return None;
        }
        let mut wakers = Wakers::default();
        woken.iter_mut().for_each(|woken| wakers.append(woken));
        Some(Effects { losses: holds.take_lost(), wakers, work, inboxes, idle })
    }
}
