//! What a server reports about its process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The process that a real server would be. [`Server::restart`](super::Server::restart) begins a new one.
pub(super) struct Identity {
    run_id: String,
    /// The start of the process, since the Unix epoch.
    started: Duration,
}

impl Identity {
    pub(super) fn started_at(started: Duration) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let run_id = format!("{:040x}", LAST.fetch_add(1, Ordering::Relaxed) + 1);
        Self { run_id, started }
    }

    /// The section `server` of `INFO`, reduced to the fields that scripts read.
    pub(super) fn info(&self, now: Duration) -> String {
        let uptime = now.as_secs().saturating_sub(self.started.as_secs());
        format!("# Server\r\nrun_id:{}\r\nuptime_in_seconds:{uptime}\r\n", self.run_id)
    }

    /// The start of the process, in whole seconds. Never 0, which would mean that it is not known.
    pub(super) fn last_save(&self) -> i64 {
        i64::try_from(self.started.as_secs()).unwrap_or(i64::MAX).max(1)
    }
}

/// A server that was never restarted reports an unlimited uptime, because it has lost nothing.
impl Default for Identity {
    fn default() -> Self {
        Self::started_at(Duration::ZERO)
    }
}
