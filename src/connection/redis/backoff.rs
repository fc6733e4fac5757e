//! How long to wait before connecting again.

use std::time::Duration;

use crate::jitter::Jitter;

const SHORTEST: Duration = Duration::from_millis(10);
/// 1 s with the jitter on top.
const LONGEST: Duration = Duration::from_millis(800);
/// A connection that lasted this long was a good one.
const GOOD: Duration = Duration::from_secs(1);

/// Doubling pauses with jitter, so that the clients of a server that comes back do not all come at once.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
    jitter: Jitter,
}

impl Backoff {
    pub(super) fn new(seed: u64) -> Self {
        Self { next: SHORTEST, jitter: Jitter::new(seed) }
    }

    pub(super) fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(LONGEST);
        self.jitter.spread(pause)
    }

    /// A connection was there for `time`. One that ends at once does not shorten the pauses: a server that accepts
    /// and hangs up would be called a hundred times a second.
    pub(super) fn lasted(&mut self, time: Duration) {
        if time >= GOOD {
            self.next = SHORTEST;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_to_a_second_and_starts_over_after_a_good_connection() {
        let mut backoff = Backoff::new(1);
        let pauses: Vec<_> = (0..10).map(|_| backoff.pause()).collect();
        assert!(pauses[0] < Duration::from_millis(13));
        assert!(pauses.iter().all(|pause| *pause <= Duration::from_secs(1)));
        assert!(pauses[8] >= Duration::from_millis(600));
        backoff.lasted(Duration::from_millis(1));
        assert!(backoff.pause() >= Duration::from_millis(600));
        backoff.lasted(GOOD);
        assert!(backoff.pause() < Duration::from_millis(13));
    }
}
