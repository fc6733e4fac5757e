//! Pauses between failed attempts.

use std::time::Duration;

use crate::jitter::Jitter;

/// The pause doubles with each failure, from `shortest` to `longest`. Jitter changes each pause by up to a quarter, so
/// that the clients of a restarted server do not all reconnect at the same moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pauses {
    pub(crate) shortest: Duration,
    pub(crate) longest: Duration,
}

impl Pauses {
    /// The pause after a failure that follows `failures` earlier ones.
    pub(crate) fn after(self, failures: u32, jitter: &mut Jitter) -> Duration {
        let doubled = self.shortest.saturating_mul(2_u32.saturating_pow(failures));
        jitter.spread(doubled.min(self.longest))
    }

    /// The longest pause, jitter included.
    #[cfg(any(test, feature = "_redis"))]
    pub(crate) fn at_most(self) -> Duration {
        self.longest * 5 / 4
    }
}

/// The pauses of one series of attempts.
#[derive(Debug)]
pub(crate) struct Backoff {
    pauses: Pauses,
    failures: u32,
    jitter: Jitter,
}

impl Backoff {
    pub(crate) fn new(pauses: Pauses, seed: u64) -> Self {
        Self { pauses, failures: 0, jitter: Jitter::new(seed) }
    }

    /// Records a failure and returns the pause after it.
    pub(crate) fn pause(&mut self) -> Duration {
        let pause = self.pauses.after(self.failures, &mut self.jitter);
        self.failures = self.failures.saturating_add(1);
        pause
    }

    /// Records a success that lasted for `time`. Only a success that lasted as long as the longest pause resets the
    /// backoff. Otherwise a server that accepts and closes connections at once would be dialled a hundred times a
    /// second.
    #[cfg(feature = "_redis")]
    pub(crate) fn lasted(&mut self, time: Duration) {
        if time >= self.pauses.at_most() {
            self.failures = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSES: Pauses = Pauses { shortest: Duration::from_millis(10), longest: Duration::from_millis(800) };

    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut backoff = Backoff::new(PAUSES, 1);
        let (mut expected, mut drawn) = (PAUSES.shortest, Vec::new());
        for _ in 0..40 {
            let pause = backoff.pause();
            assert!((expected * 3 / 4..=expected * 5 / 4).contains(&pause), "{pause:?} instead of {expected:?}");
            expected = (expected * 2).min(PAUSES.longest);
            drawn.push(pause);
        }
        assert_eq!(PAUSES.at_most(), Duration::from_secs(1));
        let late = &drawn[10..];
        assert!(late.iter().any(|pause| *pause != late[0]), "no jitter: {late:?}");
        let mut other = Backoff::new(PAUSES, 2);
        assert!(drawn.iter().any(|pause| *pause != other.pause()), "the seed decides nothing");
        assert!(PAUSES.after(u32::MAX, &mut Jitter::new(1)) <= PAUSES.at_most());
    }

    #[cfg(feature = "_redis")]
    #[test]
    fn only_what_lasted_starts_over() {
        let mut backoff = Backoff::new(PAUSES, 1);
        for _ in 0..10 {
            backoff.pause();
        }
        backoff.lasted(PAUSES.at_most() - Duration::from_millis(1));
        assert!(backoff.pause() >= PAUSES.longest * 3 / 4);
        backoff.lasted(PAUSES.at_most());
        assert!(backoff.pause() <= PAUSES.shortest * 5 / 4);
    }
}
