//! Permits that expire, in the format of Redisson.

use std::time::Duration;

use super::{Attempt, Copy, Request, Resource, id, sent};
use crate::error::Result;
use crate::protocol::kind::Kind;
use crate::protocol::timed_permits;

impl Resource {
    /// A permit in the format of Redisson. What a copy of its request may do is remembered for `keep` after its end.
    pub fn timed_permit(name: &str, keep: Duration) -> Result<Self> {
        let keep = keep.as_millis().try_into().unwrap_or(u64::MAX);
        Self::new(super::PREFIX, name, Kind::TimedPermit { keep })
    }

    /// The leases of the permits.
    pub fn leases(&self) -> &str {
        self.keys.beside().unwrap_or_default()
    }

    /// The mark of a permit or of a call.
    pub fn mark(&self, id: &str) -> String {
        self.keys.mark(id)
    }

    /// Gives the permit of an attempt back, whose request was sent more than once.
    pub fn release_resent(&self, attempt: Attempt) -> Option<Request> {
        self.keys.kind.with(|resource| Some(sent(resource.held()?.release(&self.keys, self.site(), id(attempt), true))))
    }

    /// Gives a permit back by its id, for the call of that attempt.
    pub fn release_id(&self, permit: &str, caller: Attempt, keep: Duration) -> Request {
        sent(timed_permits::release_id(&self.keys, self.site(), permit, id(caller), keep))
    }

    /// Sets how many permits there are.
    pub fn set_permits(&self, copy: Copy, permits: u32) -> Request {
        sent(timed_permits::set(&self.keys, self.site(), copy.call(), permits))
    }

    /// Looks at the permits, and lists some of them.
    pub fn inspect_timed(&self, listed: usize) -> Request {
        sent(timed_permits::inspect(&self.keys, listed))
    }
}

impl Attempt {
    /// The id of its permit.
    pub fn permit(self) -> String {
        id(self).permit()
    }
}
