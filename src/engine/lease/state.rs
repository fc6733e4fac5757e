//! Whether a hold is held, in one atomic. Each acquisition reads it, and guards and the watchdog may change it
//! concurrently.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::engine::lease::loss::Loss;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaseState {
    Held { deadline: Instant },
    Lost(Loss),
    Released,
}

#[derive(Debug)]
pub(super) struct AtomicState {
    /// The first deadline. Later ones are counted from here.
    first: Instant,
    bits: AtomicU64,
}

const RELEASED: u64 = 0;
/// The bits of a loss are its place here, counted from 1.
const LOSSES: [Loss; 4] = [Loss::Expired, Loss::Gone, Loss::Revoked, Loss::Closed];
/// The bits of a hold whose deadline is the first one. Each nanosecond adds 1.
const HELD: u64 = 1 + LOSSES.len() as u64;

impl AtomicState {
    pub(super) fn held(deadline: Instant) -> Self {
        Self { first: deadline, bits: AtomicU64::new(HELD) }
    }

    pub(super) fn load(&self) -> LeaseState {
        self.state(self.bits.load(Ordering::Acquire))
    }

    /// Changes the state, and returns the one before. `change` may be called several times. `Err` with the state if it
    /// returns `None`.
    pub(super) fn update(&self, change: impl Fn(LeaseState) -> Option<LeaseState>) -> Result<LeaseState, LeaseState> {
        let changed = |bits| change(self.state(bits)).map(|state| self.bits(state));
        let before = self.bits.fetch_update(Ordering::SeqCst, Ordering::SeqCst, changed);
        before.map(|bits| self.state(bits)).map_err(|bits| self.state(bits))
    }

    fn state(&self, bits: u64) -> LeaseState {
        if let Some(nanos) = bits.checked_sub(HELD) {
            return LeaseState::Held { deadline: self.first + Duration::from_nanos(nanos) };
        }
        let loss = bits.checked_sub(1).and_then(|at| LOSSES.get(usize::try_from(at).ok()?));
        loss.map_or(LeaseState::Released, |loss| LeaseState::Lost(*loss))
    }

    fn bits(&self, state: LeaseState) -> u64 {
        match state {
            LeaseState::Released => RELEASED,
            // One that is missing in the list would be read as another loss, and never as held.
            LeaseState::Lost(loss) => {
                LOSSES.iter().position(|other| *other == loss).map_or(HELD - 1, |at| 1 + at as u64)
            }
            LeaseState::Held { deadline } => {
                let nanos = deadline.saturating_duration_since(self.first).as_nanos();
                u64::try_from(nanos).unwrap_or(u64::MAX).saturating_add(HELD)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::an_instant;

    #[test]
    fn each_state_is_read_as_it_was_written() {
        let now = an_instant();
        let state = AtomicState::held(now);
        assert_eq!(state.load(), LeaseState::Held { deadline: now });
        let later = [Duration::from_nanos(1), Duration::from_secs(1), Duration::from_secs(100 * 24 * 3600)];
        let held = later.map(|later| LeaseState::Held { deadline: now + later });
        for next in held.into_iter().chain(LOSSES.map(LeaseState::Lost)).chain([LeaseState::Released]) {
            let before = state.load();
            assert_eq!(state.update(|_| Some(next)), Ok(before));
            assert_eq!((state.load(), state.update(|_| None)), (next, Err(next)));
        }
    }
}
