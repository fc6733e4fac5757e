//! Decides when the map of slots is read again. Pure: time comes in as an argument.

use std::time::{Duration, Instant};

use crate::jitter::Jitter;

/// The map is read at least this often, even if no call is redirected.
const PERIOD: Duration = Duration::from_secs(60);

/// The shortest time between two readings. It doubles with each reading that changed nothing. It stays short, because a
/// client that does not know of a failover sends calls to the old master, which may execute them later and lose the writes.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_millis(250);

/// | state | next reading |
/// |---|---|
/// | no sign that the map is old | a period after the last one |
/// | asked for | at once, but a pause after the last one |
#[derive(Debug)]
pub(super) struct Refresh {
    last: Instant,
    period: Duration,
    pause: Duration,
    asked: bool,
    jitter: Jitter,
}

impl Refresh {
    /// A map was read `now`.
    pub(super) fn new(now: Instant, jitter: Jitter) -> Self {
        let mut refresh = Self { last: now, period: PERIOD, pause: SHORTEST, asked: false, jitter };
        refresh.draw();
        refresh
    }

    /// Records a sign that the map is old. Returns whether it is the first one since the last reading.
    pub(super) fn ask(&mut self, now: Instant) -> bool {
        let calm = now.saturating_duration_since(self.last) >= LONGEST;
        if calm && !self.asked {
            self.pause = SHORTEST;
        }
        !std::mem::replace(&mut self.asked, true)
    }

    /// The time of the next reading.
    pub(super) fn due(&self) -> Instant {
        self.last + if self.asked { self.pause } else { self.period }
    }

    /// Records that a reading begins. A sign from now on asks for another one.
    pub(super) fn begin(&mut self) {
        self.asked = false;
    }

    /// Records that a reading has ended. `news`: it changed the map.
    pub(super) fn done(&mut self, now: Instant, news: bool) {
        self.last = now;
        self.pause = if news { SHORTEST } else { (self.pause * 2).min(LONGEST) };
        self.draw();
    }

    /// The time is random, so that clients which a cluster redirected at the same time do not all come back at the same
    /// time.
    fn draw(&mut self) {
        self.period = PERIOD * 4 / 5 + self.jitter.up_to(PERIOD * 2 / 5);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::an_instant;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_quiet_cluster_is_asked_once_a_minute() {
        let start = an_instant();
        let mut refresh = Refresh::new(start, Jitter::new(7));
        let mut periods = Vec::new();
        for _ in 0..50 {
            let (last, due) = (refresh.last, refresh.due());
            periods.push(due - last);
            refresh.begin();
            refresh.done(due, false);
        }
        assert!(periods.iter().all(|period| (Duration::from_secs(48)..=Duration::from_secs(72)).contains(period)));
        assert!(periods.iter().any(|period| *period != periods[0]), "they are spread");
    }

    #[test]
    fn pauses_grow_while_nothing_changes() {
        let start = an_instant();
        let mut refresh = Refresh::new(start, Jitter::new(7));
        let mut now = start + Duration::from_secs(10);
        let mut pauses = Vec::new();
        for _ in 0..6 {
            assert!(refresh.ask(now));
            assert!(!refresh.ask(now), "asked for already");
            let due = refresh.due().max(now);
            pauses.push((due - now) / 1_000_000 * 1_000_000);
            refresh.begin();
            refresh.done(due, false);
            now = due;
        }
        assert_eq!(pauses, [0, 200, 250, 250, 250, 250].map(|ms| MS * ms));
    }

    #[test]
    fn news_and_calm_make_the_pause_short_again() {
        let start = an_instant();
        let mut refresh = Refresh::new(start, Jitter::new(7));
        for _ in 0..5 {
            refresh.begin();
            refresh.done(start, false);
        }
        refresh.ask(start);
        assert_eq!(refresh.due(), start + LONGEST);
        refresh.begin();
        refresh.done(start, true);
        refresh.ask(start);
        assert_eq!(refresh.due(), start + SHORTEST, "after news");
        for _ in 0..5 {
            refresh.begin();
            refresh.done(start, false);
        }
        let later = start + LONGEST;
        refresh.ask(later);
        assert_eq!(refresh.due(), start + SHORTEST, "after a calm");
    }

    #[test]
    fn a_sign_during_a_reading_asks_for_another() {
        let start = an_instant();
        let mut refresh = Refresh::new(start, Jitter::new(7));
        refresh.ask(start);
        refresh.begin();
        assert!(refresh.ask(start + 5 * MS));
        refresh.done(start + 9 * MS, true);
        assert_eq!(refresh.due(), start + 109 * MS);
    }
}
