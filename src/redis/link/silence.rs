//! How long callers have waited for a silent connection, even if they gave their calls up.
//!
//! A caller may give its call up, for instance at the end of a time limit of its own. One such call says little about
//! its connection. But if no caller waits for as long as a connection may be silent, no call ever finds out that the
//! connection is dead. So the waits since the last answer are added up. The time in which several callers waited counts
//! once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::mutex::lock;

/// The silence of a connection, counted while callers waited for an answer.
#[derive(Debug, Default)]
pub(in crate::redis) struct Silence {
    /// Whether the state is set. Each answer looks at this first.
    is_set: AtomicBool,
    state: Mutex<Option<Unanswered>>,
}

#[derive(Debug)]
struct Unanswered {
    generation: u64,
    waited: Duration,
    /// Until when the waits are counted.
    until: Instant,
}

impl Silence {
    /// Records that the connection has answered.
    pub(in crate::redis) fn ends(&self) {
        if self.is_set.load(Ordering::Relaxed) {
            self.is_set.store(false, Ordering::Relaxed);
            *lock(&self.state) = None;
        }
    }

    /// Records that a caller waited for this connection from `since` to `now`. Returns how long callers have waited in
    /// all.
    pub(in crate::redis) fn add(&self, generation: u64, since: Instant, now: Instant) -> Duration {
        let mut state = lock(&self.state);
        let (before, from) = match &*state {
            Some(state) if state.generation == generation => (state.waited, since.max(state.until)),
            _ => (Duration::ZERO, since),
        };
        let waited = before + now.saturating_duration_since(from);
        *state = Some(Unanswered { generation, waited, until: now });
        self.is_set.store(true, Ordering::Relaxed);
        waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::an_instant;

    #[test]
    fn the_waits_for_one_connection_add_up_until_it_answers() {
        let (silence, start, second) = (Silence::default(), an_instant(), Duration::from_secs(1));
        let waits = |generation, from, to| silence.add(generation, start + second * from, start + second * to);
        assert_eq!(waits(1, 0, 2), second * 2);
        assert_eq!(waits(1, 1, 3), second * 3, "the second that two have waited counts once");
        assert_eq!(waits(1, 9, 10), second * 4, "between two calls no answer is due");
        assert_eq!(waits(2, 10, 11), second);
        silence.ends();
        assert_eq!(waits(2, 11, 12), second);
    }
}
