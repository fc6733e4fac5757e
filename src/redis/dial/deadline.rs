//! The end of a time limit.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::mutex::lock;

/// The time at which waiting ends.
#[derive(Clone, Copy, Debug)]
pub(in crate::redis) struct Deadline(Instant);

#[expect(clippy::disallowed_methods, reason = "this is an adapter: its sockets know no other clock")]
impl Deadline {
    /// A deadline after this time. `None` if the time is zero or the deadline is past the range of the clock.
    pub(in crate::redis) fn after(within: Duration) -> Option<Self> {
        if within.is_zero() {
            return None;
        }
        Instant::now().checked_add(within).map(Self)
    }

    /// A deadline after the remaining time divided by `parts`.
    pub(in crate::redis) fn share(self, parts: u32) -> io::Result<Self> {
        Ok(Self(Instant::now() + self.left()? / parts))
    }

    /// The remaining time. It is never zero, because sockets take that for "no limit".
    pub(in crate::redis) fn left(self) -> io::Result<Duration> {
        let left = self.0.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

/// The deadline of a socket, which is put off when the login has succeeded.
#[derive(Clone, Debug)]
pub(in crate::redis) struct SocketDeadline(Arc<Mutex<Deadline>>);

impl SocketDeadline {
    pub(in crate::redis) fn new(deadline: Deadline) -> Self {
        Self(Arc::new(Mutex::new(deadline)))
    }

    pub(in crate::redis) fn get(&self) -> Deadline {
        *lock(&self.0)
    }

    pub(in crate::redis) fn put_off(&self, deadline: Deadline) {
        *lock(&self.0) = deadline;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_has_passed_or_leaves_time() {
        assert!(Deadline::after(Duration::ZERO).is_none());
        assert!(Deadline::after(Duration::MAX).is_none());
        let hour = Duration::from_secs(3600);
        let left = Deadline::after(hour).unwrap().share(4).unwrap().left().unwrap();
        assert!(left <= hour / 4 && left > hour / 8);
        let soon = Deadline::after(Duration::from_micros(50)).unwrap();
        while let Ok(left) = soon.left() {
            assert!(!left.is_zero(), "a socket would take that for no limit");
        }
        assert!(soon.share(4).is_err());
    }
}
