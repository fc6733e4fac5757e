//! What the server's clock shows now, by the last reply that said so.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::mutex::lock;
use crate::protocol::reply::ServerMillis;

/// Behind the server's clock by up to the latency of the last reply, never used for leases: only to tell the server
/// until when a request is meant to be executed.
#[derive(Debug, Default)]
pub(crate) struct ServerClock {
    last: Mutex<Option<(Instant, ServerMillis)>>,
}

impl ServerClock {
    /// 0 comes from a script that did not read the clock.
    pub(crate) fn observe(&self, now: Instant, server: ServerMillis) {
        if server == 0 {
            return;
        }
        *lock(&self.last) = Some((now, server));
    }

    /// The server's time `after` from now; 0, which the scripts read as "any time", before the first reply.
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
        clock.observe(start + Duration::from_secs(1), 0);
        assert_eq!(clock.at(start + Duration::from_secs(1), Duration::ZERO), 2_000);
    }
}
