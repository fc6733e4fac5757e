//! Whether the server answers heartbeats of any name. Pure: time comes in as an argument.

use std::time::{Duration, Instant};

/// Failures that lie further apart are not one silence: a server that gives no answer is asked more often than this.
const APART: Duration = Duration::from_secs(10);

/// Since when no heartbeat of any name got a usable answer, and when the last one failed.
#[derive(Debug, Default)]
pub(super) struct Silence(Option<(Instant, Instant)>);

impl Silence {
    /// A heartbeat that was sent at `sent` has failed now. Returns the start of the silence.
    pub(super) fn goes_on(&mut self, sent: Instant, now: Instant) -> Instant {
        let since = match self.0 {
            Some((since, last)) if sent <= last + APART => since.min(sent),
            _ => sent,
        };
        self.0 = Some((since, now));
        since
    }

    /// The server has answered.
    pub(super) fn ends(&mut self) {
        self.0 = None;
    }
}
