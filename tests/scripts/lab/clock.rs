//! The server's clock, which is the machine's and may be set back at any time.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use super::Lab;

/// What the server's clock showed once.
pub struct Clock {
    pub us: u64,
    read: Instant,
}

impl Clock {
    pub fn ms(&self) -> u64 {
        self.us / 1000
    }
}

impl Lab {
    pub fn now(&mut self) -> u64 {
        self.clock().ms()
    }

    /// A time that is over, even if the clock is set back a little before the server compares it.
    pub fn past(&mut self) -> u64 {
        self.now() - 60_000
    }

    pub fn clock(&mut self) -> Clock {
        let (seconds, micros): (u64, u64) = redis::cmd("TIME").query(&mut self.connection).unwrap();
        Clock { us: seconds * 1_000_000 + micros, read: Instant::now() }
    }

    /// The milliseconds that the clock may have shown since then.
    pub fn since(&mut self, before: &Clock) -> RangeInclusive<u64> {
        let took = before.read.elapsed();
        between(before.us, took, self.clock().us)
    }

    /// Whether the clock was not set back since then, so that what depends on it can be judged.
    pub fn ran_on_since(&mut self, before: &Clock) -> bool {
        self.since(before) != (0..=u64::MAX)
    }
}

/// The milliseconds that a clock may have shown between two readings, in microseconds, which are at least `took` apart.
/// A clock that was set back meanwhile, as machines do, may have shown anything.
fn between(earliest: u64, took: Duration, latest: u64) -> RangeInclusive<u64> {
    // Clocks run at slightly different rates, and a time service may slow one down.
    let least = took - took / 100;
    if u128::from(latest) < u128::from(earliest) + least.as_micros() {
        return 0..=u64::MAX;
    }
    earliest / 1000..=latest / 1000
}

#[test]
fn only_a_clock_that_ran_on_says_when_a_script_ran() {
    let took = Duration::from_millis(5);
    assert_eq!(between(10_000, took, 15_000), 10..=15);
    assert_eq!(between(10_000, took, 14_960), 10..=14, "a little slower");
    for set_back in [9_000, 10_000, 14_000] {
        assert_eq!(between(10_000, took, set_back), 0..=u64::MAX, "{set_back}");
    }
}
