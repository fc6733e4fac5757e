//! Whether the server answers anybody's touches. Pure: time comes in as an argument.

use std::time::{Duration, Instant};

/// Failures that lie further apart are not one silence: while a server gives no answer, it is asked more often.
const APART: Duration = Duration::from_secs(10);

/// Since when no touch of any name got a usable answer, and when the last one failed.
#[derive(Debug, Default)]
pub(super) struct Silence(Option<(Instant, Instant)>);

impl Silence {
    /// A heartbeat that was sent then has failed now. Returns since when there is silence.
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
