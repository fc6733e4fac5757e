//! An estimate of the server's clock, from the replies that carry its time.
//!
//! After a failover, and in a cluster, replies come from servers whose clocks differ. The estimate follows the clock
//! furthest ahead: a request that is dated by another clock would be stale on arrival at that server.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::mutex::lock;
use crate::observe::meter;
use crate::protocol::reply::ServerMillis;

/// How long the estimate keeps the clock that was furthest ahead. If no reply has confirmed that clock for this long,
/// it is gone or was set back, and a slower clock counts.
const KEPT: Duration = Duration::from_secs(10);

/// A request may be executed this much later than the client gives up, because the client's estimate of the server's
/// clock lags by a network delay.
const SLACK: Duration = Duration::from_millis(100);

/// The estimate lags behind the server's clock by up to the latency of a reply. It tells the server until when a
/// request may be executed, and which period by a pattern of cron is meant. The server checks both by its own clock.
/// The estimate never counts a lease.
#[derive(Debug, Default)]
pub(crate) struct ServerClock {
    last: Mutex<Option<(Instant, ServerMillis)>>,
}

impl ServerClock {
    /// Records the time in a reply. A script that did not read the clock replies 0, which is ignored.
    pub(crate) fn observe(&self, now: Instant, server: ServerMillis) {
        if server != 0 {
            // A recorder of metrics is the application's code, so this is told after the mutex is free.
            meter::server_time(self.learn(now, server));
        }
    }

    /// Returns by how much that time is behind the estimate: the reply was slow, comes from a slower clock, or the
    /// clock was set back.
    fn learn(&self, now: Instant, server: ServerMillis) -> Duration {
        let mut last = lock(&self.last);
        let expected = last.map_or(server, |seen| ahead(seen, now, Duration::ZERO));
        let is_kept = last.is_some_and(|seen| passed(seen, now) < KEPT);
        if server >= expected || !is_kept {
            *last = Some((now, server));
        }
        Duration::from_millis(expected.saturating_sub(server))
    }

    /// The latest time at which the server may execute a request that is sent now. After `wait`, the answer is of no
    /// use.
    pub(crate) fn not_after(&self, now: Instant, wait: Duration) -> ServerMillis {
        self.at(now, wait + SLACK)
    }

    /// The server's time at `after` from now. Before the first reply it is 0, which scripts read as no limit.
    pub(crate) fn at(&self, now: Instant, after: Duration) -> ServerMillis {
        lock(&self.last).map_or(0, |seen| ahead(seen, now, after))
    }
}

fn passed((seen, _): (Instant, ServerMillis), now: Instant) -> Duration {
    now.saturating_duration_since(seen)
}

fn ahead(seen: (Instant, ServerMillis), now: Instant, after: Duration) -> ServerMillis {
    let passed = passed(seen, now) + after;
    seen.1.saturating_add(u64::try_from(passed.as_millis()).unwrap_or(u64::MAX))
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
        clock.observe(start + Duration::from_secs(1), 6_000);
        clock.observe(start + Duration::from_secs(1), 0);
        assert_eq!(clock.at(start + Duration::from_secs(1), Duration::ZERO), 6_000);
    }

    #[test]
    fn an_answer_lags_behind_the_clock_furthest_ahead() {
        let (clock, start) = (ServerClock::default(), crate::runtime::an_instant());
        let second = Duration::from_secs(1);
        let lags = [(0, 5_000), (1, 6_200), (2, 7_150), (2, 6_000)]
            .map(|(seconds, server)| clock.learn(start + second * seconds, server));
        assert_eq!(lags, [0, 0, 50, 1_200].map(Duration::from_millis));
    }

    #[test]
    fn the_clock_furthest_ahead_counts_while_its_server_replies() {
        let (clock, start) = (ServerClock::default(), crate::runtime::an_instant());
        let second = Duration::from_secs(1);
        for n in 0..60 {
            let now = start + second * n;
            clock.observe(now, 9_000 + 1000 * u64::from(n));
            clock.observe(now, 5_000 + 1000 * u64::from(n));
            assert_eq!(clock.at(now, Duration::ZERO), 9_000 + 1000 * u64::from(n));
        }
        let ended = start + second * 59;
        clock.observe(ended + KEPT - second, 73_000);
        assert_eq!(clock.at(ended + KEPT - second, Duration::ZERO), 77_000, "it may reply again");
        clock.observe(ended + KEPT, 74_000);
        assert_eq!(clock.at(ended + KEPT, Duration::ZERO), 74_000, "it is gone, or was set back");
    }
}
