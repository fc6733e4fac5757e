//! A run, as its work and as its end see it.

use std::time::{Duration, SystemTime};

use crate::error::Result;
use crate::hold::covered::covered;
use crate::hold::guard::{LockGuard, LossSignal};
use crate::protocol::once::RunEnd;
use crate::protocol::token::Token;

/// A run that has begun, and has to end.
pub(crate) struct Running {
    guard: LockGuard,
    every: Duration,
    least: Duration,
}

impl Running {
    pub(super) fn new(guard: LockGuard, every: Duration, least: Duration) -> Self {
        Self { guard, every, least }
    }

    pub(super) fn guard(&self) -> &LockGuard {
        &self.guard
    }

    pub(crate) fn run(&self) -> Run {
        let token = self.guard.token();
        let (tick, every) = (tick_of(token, self.every), self.every);
        Run { token, tick, every, lost: self.guard.lost_signal() }
    }

    /// Ends the run. The error says that the hold may not have covered the work.
    pub(crate) async fn end(self, is_done: bool) -> Result<()> {
        let (lease, period) = (self.guard.lease(), self.every);
        covered(self.guard.end_run(RunEnd { lease, period, is_done, least: self.least }).await)
    }
}

/// A run of [`Once`](crate::Once), as its work sees it.
#[derive(Clone, Debug)]
pub struct Run {
    token: Token,
    tick: u64,
    every: Duration,
    lost: LossSignal,
}

impl Run {
    /// The fencing token of the run: larger than that of every earlier run.
    pub fn token(&self) -> Token {
        self.token
    }

    /// The number of the period, counted from 1970-01-01 00:00 UTC by the server's clock. The same for all runs of the
    /// period, and for no others, so that it can name what the work writes.
    pub fn tick(&self) -> u64 {
        self.tick
    }

    /// When the period began, by the server's clock.
    pub fn period_began(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(self.tick.saturating_mul(millis(self.every)))
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

/// A token of a run is the time at which it began, in microseconds.
pub(super) fn tick_of(token: Token, every: Duration) -> u64 {
    token.get() / 1000 / millis(every).max(1)
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
