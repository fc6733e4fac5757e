//! Locks in the format of Redisson.

use super::{Request, Resource, sent};
use crate::error::Result;
use crate::protocol::kind::Kind;
use crate::protocol::redisson;

impl Resource {
    /// A lock in the format of Redisson, with fencing tokens or without.
    pub fn redisson(name: &str, fenced: bool) -> Result<Self> {
        // Its keys have no prefix. Its messages go to a channel of its own.
        Self::new(super::PREFIX, name, Kind::Redisson { fenced })
    }

    /// The channel of a lock in the format of Redisson.
    pub fn channel(&self) -> &str {
        self.keys.channel()
    }

    /// Releases the lock of an owner, whoever it is.
    pub fn force_release_shared(&self, owner: &str, not_after: u64) -> Request {
        sent(redisson::force_release(&self.keys, self.site(), owner, not_after))
    }

    /// Looks at a lock in the format of Redisson.
    pub fn inspect_shared(&self) -> Request {
        sent(redisson::inspect(&self.keys))
    }
}
