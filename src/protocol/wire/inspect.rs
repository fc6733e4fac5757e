//! Looks at the state of a resource.

use super::{Request, Resource, sent};
use crate::protocol::latch::Latch;
use crate::protocol::mutex;

impl Resource {
    /// Reads the state of the lock, with so many of its tickets.
    pub fn inspect_lock(&self, listed: u32) -> Request {
        sent(mutex::inspect(&self.keys, listed))
    }

    /// Reads the state of the permits, with so many of their tickets.
    pub fn inspect_permits(&self, listed: u32) -> Request {
        sent(self.permits().inspect(&self.keys, listed))
    }

    /// Reads the state of the latch, with so many of its tickets.
    pub fn inspect_latch(&self, listed: u32) -> Request {
        sent(Latch.inspect(&self.keys, listed))
    }
}
