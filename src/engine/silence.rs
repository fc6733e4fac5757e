//! Detects that the server answers no heartbeats at all. Pure: time comes in as an argument.

use std::time::{Duration, Instant};

/// Failures further apart than this belong to different silences, because a server that gives no answer is asked more
/// often.
const APART: Duration = Duration::from_secs(10);

/// The start of the silence, in which no heartbeat of any name got a usable answer, and the time of the last failure.
#[derive(Debug, Default)]
pub(super) struct Silence(Option<(Instant, Instant)>);

impl Silence {
    /// Records that a heartbeat sent at `sent` has failed. Returns the start of the silence.
    pub(super) fn goes_on(&mut self, sent: Instant, now: Instant) -> Instant {
        let since = match self.0 {
            Some((since, last)) if sent <= last + APART => since.min(sent),
            _ => sent,
        };
        self.0 = Some((since, now));
        since
    }

    /// Ends the silence, because the server has answered.
    pub(super) fn ends(&mut self) {
        self.0 = None;
    }
}
