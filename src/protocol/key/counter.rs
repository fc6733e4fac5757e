//! The names of counters in the format of Redisson: latches and semaphores.

use std::borrow::Borrow;
use std::ops::Deref;

use super::named::Named;
use super::satellites::{PERMITS, check_mapped, marks, prefixed};
use crate::connection::Topology;
use crate::error::Result;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::failure::Failure;
use crate::protocol::slot;

/// A counter of Redisson: a string by itself, a channel, and the marks of calls, which are bowline's own.
#[derive(Debug)]
pub(crate) struct SharedCounter {
    named: Named,
    channel: Box<str>,
    /// What the keys of marks begin with.
    marks: Box<str>,
    is_latch: bool,
}

impl SharedCounter {
    /// A latch whose key is `mapped`. Redisson puts braces into its channel, also if the name has some.
    pub(crate) fn latch(prefix: &str, name: &str, mapped: &str) -> Result<Self> {
        Self::new(prefix, name, mapped, (format!("redisson_countdownlatch__channel__{{{mapped}}}"), true))
    }

    /// A semaphore whose key is `mapped`.
    pub(crate) fn semaphore(prefix: &str, name: &str, mapped: &str) -> Result<Self> {
        Self::new(prefix, name, mapped, (prefixed(PERMITS, mapped), false))
    }

    fn new(prefix: &str, name: &str, mapped: &str, (channel, is_latch): (String, bool)) -> Result<Self> {
        check_mapped(prefix, mapped)?;
        let marks = marks(prefix, mapped).into();
        Ok(Self { named: Named::new(name, mapped, [""].iter()), channel: channel.into(), marks, is_latch })
    }

    pub(crate) fn channel(&self) -> &str {
        &self.channel
    }

    /// Otherwise it is a semaphore.
    pub(in crate::protocol) fn is_latch(&self) -> bool {
        self.is_latch
    }

    /// The key by which a call is known that has been executed. It is in the slot of the counter.
    pub(in crate::protocol) fn mark(&self, id: AttemptId) -> String {
        format!("{}{}", self.marks, id.text())
    }

    /// Fails if the server is a cluster in which the counter and the channel belong to different nodes.
    pub(in crate::protocol) fn check_slots(&self, topology: Topology) -> Result<(), Failure> {
        if !topology.one_name_per_call || [&self.channel, &self.marks].iter().all(|key| slot::of(key) == self.slot()) {
            return Ok(());
        }
        Err(Failure::OtherSlots(self.main().into()))
    }
}

impl Deref for SharedCounter {
    type Target = Named;

    fn deref(&self) -> &Named {
        &self.named
    }
}

impl Borrow<Named> for SharedCounter {
    fn borrow(&self) -> &Named {
        self
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::error::ErrorKind;

    /// As Redisson 4.7.0 spells the channels.
    #[test]
    fn what_belongs_to_a_counter_is_in_its_slot_or_refused() {
        let id = AttemptId { client: Uuid::nil(), n: 7 };
        for (name, latch, semaphore) in
            [("a", "{a}", "{a}"), ("a:{b}c", "{a:{b}c}", "a:{b}c"), ("a}b", "{a}b}", "{a}b}"), ("{}a", "{{}a}", "{}a")]
        {
            let (of_latch, of_semaphore) =
                (SharedCounter::latch("p", name, name).unwrap(), SharedCounter::semaphore("p", name, name).unwrap());
            assert_eq!(of_latch.channel(), format!("redisson_countdownlatch__channel__{latch}"));
            assert_eq!(of_semaphore.channel(), format!("redisson_sc:{semaphore}"));
            assert_eq!(of_latch.mark(id), of_semaphore.mark(id));
            let fits = |counter: &SharedCounter| counter.check_slots(Topology::sharded_cluster()).is_ok();
            assert_eq!(
                (fits(&of_latch), fits(&of_semaphore)),
                (name == "a", ["a", "a:{b}c"].contains(&name)),
                "{name}"
            );
            assert!(of_latch.check_slots(Topology::single_server()).is_ok());
        }
    }

    #[test]
    fn keys_of_bowline_are_no_counters() {
        for name in ["p:call:{a}:x", "p:lock:{a}", "redisson_lock_token:{a}", ""] {
            for counter in [SharedCounter::latch, SharedCounter::semaphore] {
                assert_eq!(counter("p", "a", name).unwrap_err().kind(), ErrorKind::InvalidInput, "{name}");
            }
        }
    }
}
