//! How long a master has been up. Pure: time comes in as an argument.

use std::time::{Duration, Instant};

use crate::engine::lease::drift;
use crate::protocol::token::Token;
use crate::protocol::vote::reply::{Identity, Process};

/// What is known about the process of a server.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    run_id: Box<str>,
    /// The latest possible start of the process. `None`: it started before the beginning of the client's clock.
    started: Option<Instant>,
    /// Whether the process may have replaced another one that was heard of.
    is_later: bool,
    is_known: bool,
    /// When the process has last saved its data, in seconds by its own clock. 0: that would not identify the process.
    saved: u64,
    /// The save before the last one, of the same process: an answer that is read late may name it.
    saved_before: u64,
    /// What the clock of the server showed, in microseconds, at about that time.
    clock: Option<(Instant, u64)>,
}

impl Standing {
    /// A process that may have started just now.
    pub(super) fn unknown(received: Instant) -> Self {
        Self { started: Some(received), is_later: true, ..Self::default() }
    }

    /// Records what the server reported about its process in an answer. `known` is what the request gave as
    /// [`known`](Self::known). `false`: the answer comes from a process that was replaced in the meantime, or from one
    /// that is not known.
    pub(super) fn learn(&mut self, process: &Process, known: u64, (sent, received): (Instant, Instant)) -> bool {
        match &process.identity {
            Some(Identity { run_id, uptime }) => {
                self.identify(run_id, *uptime, received);
                // A save in the same second may be that of an earlier process.
                let identifies = !run_id.is_empty() && process.micros / 1_000_000 > process.saved;
                let saved = if identifies { process.saved } else { 0 };
                if self.saved != 0 && self.saved != saved {
                    self.saved_before = self.saved;
                }
                self.saved = saved;
            }
            None if known == 0 || ![self.saved, self.saved_before].contains(&known) => return false,
            None => {}
        }
        self.clock = Some((sent + received.saturating_duration_since(sent) / 2, process.micros));
        true
    }

    fn identify(&mut self, run_id: &str, uptime: Duration, received: Instant) {
        // A server counts whole seconds of its wall clock. One that has just started may report an uptime of 1 s.
        let started = received.checked_sub(uptime.saturating_sub(Duration::from_secs(1)));
        // Without an identity, each answer may come from another process.
        if run_id.is_empty() || *self.run_id != *run_id {
            let is_later = self.is_known || run_id.is_empty();
            *self = Self { run_id: run_id.into(), started, is_later, is_known: true, ..Self::default() };
        } else {
            self.started = self.started.min(started);
        }
    }

    /// The last save of the process: a server whose last save is the same has not restarted since. 0: that would not
    /// tell.
    pub(super) fn known(&self) -> u64 {
        self.saved
    }

    /// The token that the server's clock would give now. `None`: the clock was not heard of for `longest`, and may
    /// have gone at another rate.
    pub(super) fn token(&self, now: Instant, longest: Duration) -> Option<Token> {
        let (at, micros) = self.clock?;
        let passed = now.saturating_duration_since(at);
        (passed < longest).then(|| Token::new(micros).after(passed))
    }

    /// Whether any process of the server was heard of.
    pub(super) fn is_known(&self) -> bool {
        self.is_known
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

    /// Learns of an answer that identifies its process.
    fn hear(standing: &mut Standing, run_id: &str, uptime: Duration, received: Instant) {
        let identity = Some(Identity { run_id: run_id.into(), uptime });
        assert!(standing.learn(&Process { identity, saved: 0, micros: 1 }, 0, (received, received)));
    }

    /// A time well after the beginning of the clock.
    fn now() -> Instant {
        an_instant() + 1000 * SECOND
    }

    #[test]
    fn the_first_answer_of_a_process_says_when_it_started_at_the_latest() {
        let (mut standing, now) = (Standing::default(), now());
        for (uptime, started) in [(0, now), (1, now), (2, now - SECOND), (61, now - 60 * SECOND)] {
            hear(&mut standing, &format!("process {uptime}"), SECOND * uptime, now);
            assert_eq!(standing.started, Some(started), "{uptime} s");
        }
        assert_eq!(standing.counts_from(30 * SECOND), Some(now - 30 * SECOND + drift(30 * SECOND)));
    }

    #[test]
    fn later_answers_only_make_it_older() {
        let (mut standing, now) = (Standing::default(), now());
        hear(&mut standing, "a", SECOND, now);
        hear(&mut standing, "a", SECOND, now + SECOND);
        assert_eq!(standing.started, Some(now), "rounded down, twice");
        hear(&mut standing, "a", 5 * SECOND, now + 2 * SECOND);
        assert_eq!(standing.started, Some(now - 2 * SECOND));
    }

    #[test]
    fn another_process_starts_anew() {
        let (mut standing, now) = (Standing::default(), now());
        hear(&mut standing, "a", 500 * SECOND, now);
        hear(&mut standing, "b", Duration::ZERO, now);
        assert_eq!((standing.run_id(), standing.started), ("b", Some(now)));
        hear(&mut standing, "", 9 * SECOND, now);
        hear(&mut standing, "", SECOND, now + SECOND);
        assert_eq!(standing.started, Some(now + SECOND), "without an identity, it may have restarted");
    }

    #[test]
    fn only_a_process_with_an_identity_that_follows_no_other_is_the_first() {
        let mut standing = Standing::default();
        for (run_id, is_first) in [("a", true), ("a", true), ("b", false), ("b", false), ("a", false)] {
            hear(&mut standing, run_id, SECOND, now());
            assert_eq!(standing.is_first(), is_first, "{run_id}");
        }
        let mut nameless = Standing::default();
        hear(&mut nameless, "", SECOND, now());
        assert!(!nameless.is_first(), "it may have restarted");
    }

    #[test]
    fn a_process_older_than_the_clock_counts_at_once() {
        let mut standing = Standing::default();
        for uptime in [1 << 40, u64::MAX] {
            hear(&mut standing, &uptime.to_string(), Duration::from_secs(uptime), now());
            assert!(standing.counts_from(SECOND).is_none_or(|from| from < now()), "{uptime} s");
        }
    }

    #[test]
    fn the_last_save_identifies_a_process_that_was_heard_of_in_a_later_second() {
        let (mut standing, now) = (Standing::default(), now());
        let identity = |run_id: &str| Some(Identity { run_id: run_id.into(), uptime: SECOND });
        let told = |identity, saved, micros| Process { identity, saved, micros };
        for (run_id, micros, known) in [("a", 9_999_999, 0), ("a", 10_000_000, 9), ("", 10_000_000, 0)] {
            assert!(standing.learn(&told(identity(run_id), 9, micros), 0, (now, now)));
            assert_eq!(standing.known(), known, "{run_id} {micros}");
        }
        assert!(standing.learn(&told(identity("a"), 9, 11_000_000), 0, (now, now)));
        assert!(standing.learn(&told(None, 9, 12_000_000), 9, (now, now)), "it is the same");
        assert_eq!((standing.known(), standing.run_id()), (9, "a"));
        assert!(!standing.learn(&told(None, 8, 12_000_000), 8, (now, now)), "another one that was known before");
        assert!(standing.learn(&told(identity("b"), 12, 12_500_000), 9, (now, now)));
        assert!(!standing.learn(&told(None, 0, 13_000_000), 0, (now, now)), "nobody asked");
        assert_eq!((standing.known(), standing.run_id()), (0, "b"));
    }

    #[test]
    fn of_two_answers_the_older_one_may_be_read_last() {
        let (mut standing, now) = (Standing::default(), now());
        let mut learn = |run_id: Option<&str>, saved, micros, known| {
            let identity = run_id.map(|run_id| Identity { run_id: run_id.into(), uptime: SECOND });
            standing.learn(&Process { identity, saved, micros }, known, (now, now))
        };
        assert!(learn(Some("a"), 9, 10_000_000, 0));
        // The same second: that save does not identify the process yet.
        assert!(learn(Some("a"), 12, 12_000_000, 9));
        assert!(learn(None, 9, 11_000_000, 9), "it is the same process");
        assert!(learn(Some("a"), 12, 13_000_000, 9));
        assert!(learn(None, 9, 11_000_000, 9) && learn(None, 12, 13_000_000, 12));
        assert!(!learn(None, 8, 11_000_000, 8), "another one");
        assert!(learn(Some("b"), 20, 21_000_000, 12));
        assert!(!learn(None, 12, 13_000_000, 12) && !learn(None, 9, 11_000_000, 9), "it was replaced");
    }

    #[test]
    fn tokens_follow_the_clock_of_the_server_that_was_heard_of_lately() {
        let (mut standing, sent) = (Standing::default(), now());
        assert_eq!(standing.token(sent, SECOND), None);
        let process = Process { identity: Some(Identity { run_id: "a".into(), uptime: SECOND }), saved: 1, micros: 7 };
        standing.learn(&process, 0, (sent, sent + 2 * SECOND));
        let middle = sent + SECOND;
        assert_eq!(standing.token(middle, SECOND), Some(Token::new(7)));
        assert_eq!(standing.token(middle + SECOND / 2, SECOND), Some(Token::new(500_007)));
        assert_eq!(standing.token(middle + SECOND, SECOND), None);
    }

    #[test]
    fn a_process_that_is_not_known_may_have_started_just_now() {
        let now = now();
        let unknown = Standing::unknown(now);
        assert_eq!((unknown.started, unknown.is_first()), (Some(now), false));
    }
}
