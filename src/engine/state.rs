//! The tables of the engine, and what a change of them sets off.

use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use uuid::Uuid;

use crate::cohort::id::CohortId;
use crate::cohort::table::Cohorts;
use crate::engine::attempt::Attempt;
use crate::engine::attempts::Attempts;
use crate::engine::cleanups::Cleanups;
use crate::engine::confirmations::Confirmations;
use crate::engine::handler::attempt::AttemptHandler;
use crate::engine::handler::handoff::{Assets, HandoffHandler};
use crate::engine::handler::hold::HoldHandler;
use crate::engine::heartbeats::Heartbeats;
use crate::engine::holds::Holds;
use crate::engine::lease::{Hold, Loss, Term};
use crate::engine::schedule::Schedule;
use crate::engine::turn::Given;
use crate::jitter::Jitter;
use crate::mutant::{self, Mutant};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::token::Token;
use crate::stats::Stats;

#[derive(Debug)]
pub(super) struct State {
    pub(super) attempts: Attempts,
    pub(super) holds: Holds,
    pub(super) cohorts: Cohorts<Given>,
    pub(super) cleanups: Cleanups,
    pub(super) confirmations: Confirmations,
    /// The counters that the tables cannot derive.
    pub(super) stats: Stats,
    /// When the watchdog wakes by itself.
    pub(super) armed: Option<Instant>,
    /// No attempt starts any more.
    pub(super) is_closed: bool,
    /// The watchdog ends once nothing is left to clean up.
    pub(super) is_ending: bool,
}

/// What a change of the tables sets off. It is done once the tables are unlocked, because wakers and events run foreign code.
#[derive(Debug)]
pub(super) struct Effects {
    pub(super) losses: Vec<(Arc<Hold>, Loss)>,
    pub(super) wakers: [Vec<Waker>; 3],
    /// The watchdog has something to do sooner than it expects.
    pub(super) work: bool,
    /// The last clean-up is done.
    pub(super) idle: bool,
}

/// What a grant consists of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    pub(crate) amount: u32,
    pub(crate) token: Token,
    pub(crate) term: Term,
    pub(crate) deadline: Instant,
    /// As [`Hold::replicas`].
    pub(crate) replicas: u32,
}

impl State {
    pub(super) fn new(client: Uuid) -> Self {
        let (seed, other) = client.as_u64_pair();
        Self {
            attempts: Attempts::new(client, Heartbeats::new(Jitter::new(other))),
            holds: Holds::new(Schedule::new(Jitter::new(seed))),
            cohorts: Cohorts::new(),
            cleanups: Cleanups::default(),
            confirmations: Confirmations::default(),
            stats: Stats::default(),
            armed: None,
            is_closed: false,
            is_ending: false,
        }
    }

    pub(super) fn attempt_handler(&mut self) -> AttemptHandler<'_> {
        AttemptHandler { attempts: &mut self.attempts, cleanups: &mut self.cleanups }
    }

    pub(super) fn hold_handler(&mut self) -> HoldHandler<'_> {
        let Self { holds, cohorts, cleanups, stats, .. } = self;
        HoldHandler { holds, cohorts, cleanups, stats }
    }

    pub(super) fn handoff_handler(&mut self) -> HandoffHandler<'_> {
        let Self { attempts, holds, cohorts, cleanups, .. } = self;
        HandoffHandler { cohorts, assets: Assets { attempts, holds, cleanups } }
    }

    pub(super) fn open(&mut self, attempt: Attempt) -> AttemptId {
        self.attempts.open(attempt, |n| self.holds.is_held(n))
    }

    /// The attempt becomes a hold. `None`: it was revoked, or the client was closed meanwhile.
    pub(super) fn grant(&mut self, id: AttemptId, grant: Grant, now: Instant) -> Option<Arc<Hold>> {
        let Attempt { keys, lease, member, mut revoked, .. } = self.attempts.remove(id.n)?;
        if mutant::on(Mutant::RevokedGrantHeld) {
            revoked = false;
        }
        if revoked {
            return None;
        }
        let Grant { amount, token, term, deadline, replicas } = grant;
        let cohort = member.map(|member| (CohortId::of(&keys, amount), member));
        let hold = Hold::new(keys, id, amount, token, lease, term, deadline);
        let hold = Arc::new(hold.acknowledged_by(replicas));
        self.stats.acquired += 1;
        self.holds.insert(&hold, deadline, now);
        if let Some((cohort, member)) = cohort {
            self.cohorts.set_held(&cohort, member, id.n);
        }
        Some(hold)
    }

    /// When the watchdog has something to do next.
    pub(super) fn next(&self) -> Option<Instant> {
        self.holds.next().into_iter().chain(self.attempts.heartbeats.next()).min()
    }

    /// What the last change sets off.
    pub(super) fn take_effects(&mut self) -> Effects {
        let idle = self.cleanups.take_idle();
        let mut work = self.cleanups.take_added() || self.confirmations.is_added() || (idle && self.is_ending);
        if let Some(next) = self.next()
            && self.armed.is_none_or(|armed| next < armed)
        {
            self.armed = Some(next);
            work = true;
        }
        let wakers = [self.attempts.take_woken(), self.cohorts.take_woken(), self.confirmations.take_woken()];
        Effects { losses: self.holds.take_lost(), wakers, work, idle }
    }
}
