//! How long a master has been up. Pure: time comes in as an argument.

use std::time::{Duration, Instant};

use crate::engine::lease::drift;

/// What is known about the process of a server.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    run_id: Box<str>,
    /// The latest possible start of the process. `None`: it started before the beginning of the client's clock.
    started: Option<Instant>,
    /// Whether the process may have replaced another one that was heard of.
    is_later: bool,
    is_known: bool,
}

impl Standing {
    /// Records what the server reported about its process in an answer received at that time.
    pub(super) fn learn(&mut self, run_id: &str, uptime: Duration, received: Instant) {
        // A server counts whole seconds of its wall clock. One that has just started may report an uptime of 1 s.
        let started = received.checked_sub(uptime.saturating_sub(Duration::from_secs(1)));
        // Without an identity, each answer may come from another process.
        if run_id.is_empty() || *self.run_id != *run_id {
            let is_later = self.is_known || run_id.is_empty();
            *self = Self { run_id: run_id.into(), started, is_later, is_known: true };
        } else {
            self.started = self.started.min(started);
        }
    }

    /// Whether it is the first process of the server that was heard of.
    pub(super) fn is_first(&self) -> bool {
        !self.is_later
    }

    /// The identity of the process. Empty if it is not known.
    pub(super) fn run_id(&self) -> &str {
        &self.run_id
    }

    /// The time at which the last lease has ended that the server may have lost when it started, if none was longer
    /// than `longest`. `None`: that was before the beginning of the client's clock.
    pub(super) fn counts_from(&self, longest: Duration) -> Option<Instant> {
        self.started.map(|started| started + longest + drift(longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::an_instant;

    const SECOND: Duration = Duration::from_secs(1);

    /// A time well after the beginning of the clock.
    fn now() -> Instant {
        an_instant() + 1000 * SECOND
    }

    #[test]
    fn the_first_answer_of_a_process_says_when_it_started_at_the_latest() {
        let (mut standing, now) = (Standing::default(), now());
        for (uptime, started) in [(0, now), (1, now), (2, now - SECOND), (61, now - 60 * SECOND)] {
            standing.learn(&format!("process {uptime}"), SECOND * uptime, now);
            assert_eq!(standing.started, Some(started), "{uptime} s");
        }
        assert_eq!(standing.counts_from(30 * SECOND), Some(now - 30 * SECOND + drift(30 * SECOND)));
    }

    #[test]
    fn later_answers_only_make_it_older() {
        let (mut standing, now) = (Standing::default(), now());
        standing.learn("a", SECOND, now);
        standing.learn("a", SECOND, now + SECOND);
        assert_eq!(standing.started, Some(now), "rounded down, twice");
        standing.learn("a", 5 * SECOND, now + 2 * SECOND);
        assert_eq!(standing.started, Some(now - 2 * SECOND));
    }

    #[test]
    fn another_process_starts_anew() {
        let (mut standing, now) = (Standing::default(), now());
        standing.learn("a", 500 * SECOND, now);
        standing.learn("b", Duration::ZERO, now);
        assert_eq!((standing.run_id(), standing.started), ("b", Some(now)));
        standing.learn("", 9 * SECOND, now);
        standing.learn("", SECOND, now + SECOND);
        assert_eq!(standing.started, Some(now + SECOND), "without an identity, it may have restarted");
    }

    #[test]
    fn only_a_process_with_an_identity_that_follows_no_other_is_the_first() {
        let mut standing = Standing::default();
        for (run_id, is_first) in [("a", true), ("a", true), ("b", false), ("b", false), ("a", false)] {
            standing.learn(run_id, SECOND, now());
            assert_eq!(standing.is_first(), is_first, "{run_id}");
        }
        let mut nameless = Standing::default();
        nameless.learn("", SECOND, now());
        assert!(!nameless.is_first(), "it may have restarted");
    }

    #[test]
    fn a_process_older_than_the_clock_counts_at_once() {
        let mut standing = Standing::default();
        for uptime in [1 << 40, u64::MAX] {
            standing.learn(&uptime.to_string(), Duration::from_secs(uptime), now());
            assert!(standing.counts_from(SECOND).is_none_or(|from| from < now()), "{uptime} s");
        }
    }
}
