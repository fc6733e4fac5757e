//! The end of a time that was given.

use std::io;
use std::time::{Duration, Instant};

/// After this, nothing is waited for.
#[derive(Clone, Copy, Debug)]
pub(in crate::redis) struct Deadline(Instant);

#[expect(clippy::disallowed_methods, reason = "this is an adapter: its sockets know no other clock")]
impl Deadline {
    /// `None`: it is over before it begins, or beyond all times.
    pub(in crate::redis) fn after(within: Duration) -> Option<Self> {
        if within.is_zero() {
            return None;
        }
        Instant::now().checked_add(within).map(Self)
    }

    /// A part of what is left.
    pub(super) fn share(self, parts: u32) -> io::Result<Self> {
        Ok(Self(Instant::now() + self.left()? / parts))
    }

    /// What is left, never zero, which sockets take for "no limit".
    pub(in crate::redis) fn left(self) -> io::Result<Duration> {
        let left = self.0.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}
