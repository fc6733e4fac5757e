//! A run, as its work and as its end see it.

use std::time::{Duration, SystemTime};

use super::schedule::Schedule;
use crate::error::Result;
use crate::hold::covered::covered;
use crate::hold::guard::{LockGuard, LossSignal};
use crate::protocol::once::RunEnd;
use crate::protocol::token::Token;

/// A run that has begun, and has to end.
pub(crate) struct Running {
    guard: LockGuard,
    schedule: Schedule,
    /// How long its period lasts.
    period: Duration,
    least: Duration,
}

impl Running {
    pub(super) fn new(guard: LockGuard, schedule: Schedule, period: Duration, least: Duration) -> Self {
        Self { guard, schedule, period, least }
    }

    pub(super) fn guard(&self) -> &LockGuard {
        &self.guard
    }

    pub(crate) fn run(&self) -> Run {
        let token = self.guard.token();
        let tick = self.schedule.tick_of(token);
        Run { token, tick, period_began: self.schedule.began(tick), lost: self.guard.lost_signal() }
    }

    /// Ends the run. The error says that the hold may not have covered the work.
    pub(crate) async fn end(self, is_done: bool) -> Result<()> {
        let (lease, period) = (self.guard.lease(), self.period);
        covered(self.guard.end_run(RunEnd { lease, period, is_done, least: self.least }).await)
    }
}

/// A run of [`Once`](crate::Once), as its work sees it.
#[derive(Clone, Debug)]
pub struct Run {
    token: Token,
    tick: u64,
    period_began: SystemTime,
    lost: LossSignal,
}

impl Run {
    /// The fencing token of the run: larger than that of every earlier run.
    pub fn token(&self) -> Token {
        self.token
    }

    /// The number of the period, by the server's clock: how many of that length have passed since 1970-01-01 00:00 UTC,
    /// or for a pattern of cron the seconds since then at which it matched. The same for all runs of the period, and
    /// for no others, so that it can name what the work writes.
    pub fn tick(&self) -> u64 {
        self.tick
    }

    /// When the period began, by the server's clock.
    pub fn period_began(&self) -> SystemTime {
        self.period_began
    }

    /// Whether the hold of the run is still valid by this client's own count of the lease: `false` after a loss, and
    /// after the end of the run. Sends no command.
    pub fn is_valid(&self) -> bool {
        self.lost.is_held()
    }

    /// A signal of the loss of the run's hold.
    pub fn lost_signal(&self) -> &LossSignal {
        &self.lost
    }
}
