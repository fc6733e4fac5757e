//! The calls of a barrier that no other resource has.

use std::time::Duration;

use super::{Attempt, Copy, Request, Resource, id, sent};
use crate::error::Result;
use crate::protocol::barrier;
use crate::protocol::kind::Kind;

impl Resource {
    /// A barrier for so many parties. How a generation has ended is remembered for `keep`.
    pub fn barrier(prefix: &str, name: &str, parties: u32, keep: Duration) -> Result<Self> {
        Self::new(prefix, name, Kind::Barrier { parties, keep: u64::try_from(keep.as_millis()).unwrap_or(u64::MAX) })
    }

    /// What a double barrier has of the parties inside.
    pub fn inside(prefix: &str, name: &str, parties: u32, keep: Duration) -> Result<Self> {
        Self::new(prefix, name, Kind::Inside { parties, keep: u64::try_from(keep.as_millis()).unwrap_or(u64::MAX) })
    }

    /// Where parties wait to enter a double barrier, which have come inside after the generation `of`.
    pub fn entry(prefix: &str, name: &str, parties: u32, keep: Duration, of: u64) -> Result<Self> {
        let keep = u64::try_from(keep.as_millis()).unwrap_or(u64::MAX);
        Self::new(prefix, name, Kind::Entry { parties, keep, of })
    }

    /// A party inside is ready to leave.
    pub fn leave_barrier(&self, attempt: Attempt, keep: Duration) -> Request {
        let keep = u64::try_from(keep.as_millis()).unwrap_or(u64::MAX);
        sent(barrier::leave(&self.keys, self.site(), id(attempt), keep))
    }

    /// Breaks the generation that waits.
    pub fn reset(&self, copy: Copy) -> Request {
        sent(barrier::reset_call(&self.keys, self.site(), copy.call()))
    }

    /// Reads the state of the barrier, with so many of its tickets.
    pub fn inspect_barrier(&self, listed: u32) -> Request {
        sent(barrier::inspect(&self.keys, listed))
    }
}
