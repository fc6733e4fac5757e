//! The server's clock. It starts at a given time of day, and then follows an executor or is moved by hand.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crate::runtime::Executor;

/// 2026-01-01, so that all tests with a manual clock start at the same time.
const MANUAL_START: Duration = Duration::from_secs(1_767_225_600);

pub(super) struct Clock {
    /// The server's time when `pace` was set, since the Unix epoch.
    base: Duration,
    pace: Pace,
}

enum Pace {
    /// Stands still until it is moved.
    Manual,
    /// Stands still until the first executor connects.
    Awaiting,
    /// Follows the executor, counted from the instant.
    Executor(Arc<dyn Executor>, Instant),
}

impl Clock {
    pub(super) fn starting_at(base: Duration) -> Self {
        Self { base, pace: Pace::Awaiting }
    }

    pub(super) fn manual() -> Self {
        Self { base: MANUAL_START, pace: Pace::Manual }
    }

    pub(super) fn follow(&mut self, executor: Arc<dyn Executor>) {
        if matches!(self.pace, Pace::Awaiting) {
            let since = executor.now();
            self.pace = Pace::Executor(executor, since);
        }
    }

    pub(super) fn now(&self) -> Duration {
        match &self.pace {
            Pace::Manual | Pace::Awaiting => self.base,
            Pace::Executor(executor, since) => {
                self.base.saturating_add(executor.now().saturating_duration_since(*since))
            }
        }
    }

    pub(super) fn set(&mut self, now: Duration) {
        self.base = now;
        if let Pace::Executor(executor, since) = &mut self.pace {
            *since = executor.now();
        }
    }
}

/// The time of the wall clock, where a new server's clock starts unless another time is given.
pub(super) fn wall_clock() -> Duration {
    #[expect(clippy::disallowed_methods, reason = "a server has a time of day; read once, and never by a client")]
    let now = SystemTime::now();
    now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(MANUAL_START)
}
