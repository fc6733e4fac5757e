//! Randomness for timers, so that clients do not act in step. The same seed gives the same values.

use std::time::Duration;

/// A source of random durations. It shares no state with other users of `fastrand`.
#[derive(Clone, Debug)]
pub(crate) struct Jitter(fastrand::Rng);

impl Jitter {
    pub(crate) fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// A random duration between zero and `duration`.
    pub(crate) fn up_to(&mut self, duration: Duration) -> Duration {
        duration.mul_f64(self.0.f64())
    }

    /// A random duration between 75 % and 125 % of `duration`.
    pub(crate) fn spread(&mut self, duration: Duration) -> Duration {
        duration * 3 / 4 + self.up_to(duration / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_in_range_and_repeats_with_its_seed() {
        let second = Duration::from_secs(1);
        let (mut a, mut b, mut c) = (Jitter::new(1), Jitter::new(1), Jitter::new(2));
        let mut differs = false;
        for _ in 0..1000 {
            let drawn = a.spread(second);
            assert!((second * 3 / 4..=second * 5 / 4).contains(&drawn));
            assert_eq!(drawn, b.spread(second));
            differs |= drawn != c.spread(second);
            assert!(a.up_to(second) < second && b.up_to(second) < second);
        }
        assert!(differs);
        assert_eq!(a.up_to(Duration::ZERO), Duration::ZERO);
    }
}
