//! An estimate of the server's clock, from the last reply that carried its time.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::mutex::lock;
use crate::protocol::reply::ServerMillis;

/// The estimate lags behind the server's clock by up to the latency of the last reply. It only tells the server until when a request
/// may be executed, and never counts a lease.
#[derive(Debug, Default)]
pub(crate) struct ServerClock {
    last: Mutex<Option<(Instant, ServerMillis)>>,
}

impl ServerClock {
    pub(crate) fn observe(&self, now: Instant, server: ServerMillis) {
        *lock(&self.last) = Some((now, server));
    }

    /// The server's time at `after` from now. Before the first reply it is 0, which scripts read as no limit.
    pub(crate) fn at(&self, now: Instant, after: Duration) -> ServerMillis {
        lock(&self.last).map_or(0, |(seen, server)| {
            let passed = now.saturating_duration_since(seen) + after;
            server.saturating_add(u64::try_from(passed.as_millis()).unwrap_or(u64::MAX))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_on_between_replies() {
        let (clock, start) = (ServerClock::default(), crate::runtime::an_instant());
        assert_eq!(clock.at(start, Duration::from_secs(1)), 0);
        clock.observe(start, 5_000);
        assert_eq!(clock.at(start + Duration::from_millis(250), Duration::from_millis(50)), 5_300);
        clock.observe(start + Duration::from_secs(1), 2_000);
        assert_eq!(clock.at(start + Duration::from_secs(1), Duration::ZERO), 2_000);
    }
}
