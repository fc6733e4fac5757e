//! Decides when the map of slots is read again. Pure: time comes in as an argument.

use std::time::{Duration, Instant};

use crate::jitter::Jitter;
use crate::tuning::{READING, READING_DOWN};

/// The map is read at least this often, even if no call is redirected.
const PERIOD: Duration = Duration::from_secs(60);

/// What a reading of the map has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    News,
    /// The map is as it was.
    Same,
    /// No node accepts calls.
    Down,
}

/// | state | next reading |
/// |---|---|
/// | no sign that the map is old | a period after the last one |
/// | a sign that the map is old | at once, but at least a pause after the last one |
#[derive(Debug)]
pub(super) struct Refresh {
    last: Instant,
    period: Duration,
    /// Grows from reading to reading.
    pause: Duration,
    /// The pause with jitter.
    wait: Duration,
    asked: bool,
    /// Whether a reading is under way.
    reads: bool,
    jitter: Jitter,
}

impl Refresh {
    /// A map was read `now`.
    pub(super) fn new(now: Instant, jitter: Jitter) -> Self {
        let mut refresh = Self {
            last: now,
            period: PERIOD,
            pause: READING.shortest,
            wait: READING.shortest,
            asked: false,
            reads: false,
            jitter,
        };
        refresh.draw();
        refresh
    }

    /// Records a sign that the map is old. Returns whether it is the first one since the last reading.
    pub(super) fn ask(&mut self, now: Instant) -> bool {
        let calm = now.saturating_duration_since(self.last) >= self.pause.max(READING.longest);
        if calm && !self.asked && !self.reads {
            (self.pause, self.wait) = (READING.shortest, READING.shortest);
        }
        !std::mem::replace(&mut self.asked, true)
    }

    /// The time of the next reading.
    pub(super) fn due(&self) -> Instant {
        self.last + if self.asked { self.wait } else { self.period }
    }

    /// Records that a reading begins. A sign from now on asks for another one.
    pub(super) fn begin(&mut self) {
        (self.asked, self.reads) = (false, true);
    }

    /// Records that a reading has ended.
    pub(super) fn done(&mut self, now: Instant, found: Found) {
        (self.last, self.reads) = (now, false);
        self.pause = match found {
            Found::News => READING.shortest,
            Found::Same => (self.pause * 2).min(READING.longest),
            Found::Down => (self.pause * 2).min(READING_DOWN.longest),
        };
        self.draw();
    }

    /// Draws the next pause and period. They are random, so that clients that were redirected at the same time do not
    /// all read at the same time.
    fn draw(&mut self) {
        self.wait = self.jitter.spread(self.pause);
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
            refresh.done(due, Found::Same);
        }
        assert!(periods.iter().all(|period| (Duration::from_secs(48)..=Duration::from_secs(72)).contains(period)));
        let (least, most) = (periods.iter().min().unwrap(), periods.iter().max().unwrap());
        assert!(*most - *least > Duration::from_secs(12), "they are spread: {least:?} to {most:?}");
    }

    /// The pauses between readings that all find this, while signs of an old map keep coming.
    fn pauses(found: Found, seed: u64) -> Vec<Duration> {
        let start = an_instant();
        let mut refresh = Refresh::new(start, Jitter::new(seed));
        let mut now = start + Duration::from_secs(10);
        let mut pauses = Vec::new();
        for _ in 0..10 {
            assert!(refresh.ask(now));
            assert!(!refresh.ask(now), "asked for already");
            let due = refresh.due().max(now);
            pauses.push(due - now);
            refresh.begin();
            refresh.done(due, found);
            now = due;
        }
        pauses
    }

    #[test]
    fn pauses_grow_while_nothing_changes() {
        for (found, most) in [(Found::Same, 250), (Found::Down, 4000)] {
            let expected =
                [0, 200, 400, 800, 1600, 3200, 6400, 6400, 6400, 6400].map(|ms| MS * ms).map(|due| due.min(MS * most));
            for (pause, expected) in pauses(found, 7).into_iter().zip(expected) {
                assert!((expected * 3 / 4..=expected * 5 / 4).contains(&pause), "{found:?} {pause:?} {expected:?}");
            }
        }
        assert_ne!(pauses(Found::Down, 7), pauses(Found::Down, 8), "clients do not read at the same time");
    }

    #[test]
    fn news_and_calm_make_the_pause_short_again() {
        let start = an_instant();
        let shortest = READING.shortest * 3 / 4..=READING.shortest * 5 / 4;
        let mut refresh = Refresh::new(start, Jitter::new(7));
        let down = |refresh: &mut Refresh| {
            for _ in 0..9 {
                refresh.begin();
                refresh.done(start, Found::Down);
            }
        };
        down(&mut refresh);
        refresh.ask(start);
        assert!(refresh.due() >= start + READING_DOWN.longest * 3 / 4);
        refresh.begin();
        refresh.done(start, Found::News);
        refresh.ask(start);
        assert!(shortest.contains(&(refresh.due() - start)), "after news");
        down(&mut refresh);
        let later = start + READING_DOWN.longest;
        refresh.ask(later);
        assert!(shortest.contains(&(refresh.due() - start)), "after a calm");
    }

    #[test]
    fn a_cluster_that_is_up_again_is_asked_as_often_as_before() {
        let start = an_instant();
        let mut refresh = Refresh::new(start, Jitter::new(7));
        for found in [Found::Down; 9].into_iter().chain([Found::Same]) {
            refresh.begin();
            refresh.done(start, found);
        }
        refresh.ask(start);
        assert!(refresh.due() <= start + READING.longest * 5 / 4);
    }

    #[test]
    fn a_sign_during_a_reading_asks_for_another() {
        let start = an_instant();
        let mut refresh = Refresh::new(start, Jitter::new(7));
        refresh.ask(start);
        refresh.begin();
        assert!(refresh.ask(start + 5 * MS));
        refresh.done(start + 9 * MS, Found::News);
        assert!((start + 84 * MS..=start + 134 * MS).contains(&refresh.due()));
    }
}
