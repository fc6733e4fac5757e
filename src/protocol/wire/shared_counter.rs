//! Counters in the format of Redisson.

use super::super::call::Site;
use super::{Copy, PREFIX, Request, sent};
use crate::error::Result;
use crate::protocol::key::{self, Named};
use crate::protocol::shared_counter::{self, Given};

/// A counter in the format of Redisson, as its clients address it.
#[derive(Debug)]
pub struct SharedCounter {
    counter: key::SharedCounter,
    sharded: bool,
    counts_everyone: bool,
}

impl SharedCounter {
    /// A latch.
    pub fn latch(name: &str) -> Result<Self> {
        Ok(Self { counter: key::SharedCounter::latch(PREFIX, name, name)?, sharded: false, counts_everyone: true })
    }

    /// A semaphore.
    pub fn semaphore(name: &str) -> Result<Self> {
        Ok(Self { counter: key::SharedCounter::semaphore(PREFIX, name, name)?, sharded: false, counts_everyone: true })
    }

    /// Whether the server can count every subscriber of a channel. The default is `true`.
    #[must_use]
    pub fn counts_everyone(self, counts_everyone: bool) -> Self {
        Self { counts_everyone, ..self }
    }

    /// Whether messages go through shard channels. The default is `false`.
    #[must_use]
    pub fn sharded(self, sharded: bool) -> Self {
        Self { sharded, ..self }
    }

    /// The channel.
    pub fn channel(&self) -> &str {
        self.counter.channel()
    }

    /// The mark of a call.
    pub fn mark(&self, copy: Copy) -> String {
        self.counter.mark(copy.call().id)
    }

    /// Sets the count of a latch, or the permits of a semaphore.
    pub fn set(&self, copy: Copy, new: u32) -> Request {
        sent(shared_counter::set((&self.counter, &self.mark(copy)), self.site(), copy.call(), new))
    }

    /// Takes permits, or with 0 all that are there. Tries the right to publish if that is wanted.
    pub fn take(&self, copy: Copy, permits: u32, tries_channel: bool) -> Request {
        let wanted = (permits, tries_channel);
        sent(shared_counter::take((&self.counter, &self.mark(copy)), self.site(), copy.call(), wanted))
    }

    /// Releases so many permits, or what the call of the same number has taken, if that is not known.
    pub fn release(&self, copy: Copy, permits: Option<i64>) -> Request {
        let given = permits.map_or(Given::Unknown, Given::Permits);
        sent(shared_counter::release((&self.counter, &self.mark(copy)), self.site(), copy.call(), given))
    }

    /// Counts a latch down.
    pub fn count_down(&self, copy: Copy) -> Request {
        sent(shared_counter::count_down((&self.counter, &self.mark(copy)), self.site(), copy.call()))
    }

    /// Reads the count.
    pub fn count(&self) -> Request {
        sent(shared_counter::count(&self.counter))
    }

    fn site(&self) -> Site<'_> {
        let named: &Named = &self.counter;
        let slot = self.sharded.then(|| named.slot());
        Site { inbox_prefix: "", slot, counts_everyone: self.counts_everyone, listens: false }
    }
}
