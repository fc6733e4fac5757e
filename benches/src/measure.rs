//! Many times of one thing.

use std::time::Duration;

/// Nanoseconds, in no order.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<u64>);

impl Samples {
    /// One more.
    pub fn add(&mut self, time: Duration) {
        self.0.push(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// All of `other` too.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Microseconds below which are `percent` of the samples, by the nearest one; 0 without any.
    pub fn percentile(&mut self, percent: f64) -> f64 {
        self.0.sort_unstable();
        let rank = (percent / 100.0 * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.saturating_sub(1)).map_or(0.0, |nanos| *nanos as f64 / 1e3)
    }

    /// As words.
    pub fn to_text(&self) -> String {
        self.0.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
    }

    /// What [`to_text`](Self::to_text) wrote.
    pub fn from_text(text: &str) -> Result<Self, std::num::ParseIntError> {
        text.split_whitespace().map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_the_nearest_samples() {
        let mut samples = Samples::default();
        assert_eq!(samples.percentile(50.0), 0.0);
        for micros in [40, 10, 30, 20] {
            samples.add(Duration::from_micros(micros));
        }
        let found = [0.0, 25.0, 50.0, 51.0, 99.0, 100.0].map(|percent| samples.percentile(percent));
        assert_eq!(found, [10.0, 10.0, 20.0, 30.0, 40.0, 40.0]);
    }
}
