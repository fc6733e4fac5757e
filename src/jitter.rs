//! Randomness for timers: enough to keep clients from moving in step, and the same for the same seed.

use std::time::Duration;

/// A splitmix64 sequence (Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub(crate) struct Jitter {
    state: u64,
}

impl Jitter {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Between zero and `duration`.
    pub(crate) fn up_to(&mut self, duration: Duration) -> Duration {
        // 53 bits fill the fraction of an f64, so the result is below 1.
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
        let fraction = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        duration.mul_f64(fraction)
    }

    /// Between 75 % and 125 % of `duration`.
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
