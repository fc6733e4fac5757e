//! The latch: its scripts as typed calls. Only this module knows the order of their keys and arguments.

use std::time::Duration;

use super::call::{ScriptCall, Scripts, Site};
use super::copy::CallCopy;
use super::failure::Failure;
use super::key::Keys;
use super::reply::{Acquired, Cancelled};
use super::resource::{AcquireArgs, HeartbeatCall, Held, Resource, TicketArgs};
use super::script::scripts;
use super::ticket::Ticket;
use reply::{
    CountedDown, LatchDeleted, LatchInspected, LatchSet, counted_down, latch_cancelled, latch_deleted,
    latch_heartbeat_reply, latch_inspected, latch_set, latch_wait,
};

pub(crate) mod reply;

scripts! {
    "latch", "latch":
    CANCEL = "cancel",
    COUNT_DOWN = "count_down",
    DELETE = "delete",
    HEARTBEAT = "heartbeat",
    INSPECT = "inspect",
    SET = "set",
    WAIT = "wait",
}

/// A latch, which is waited for and never held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Latch;

impl Resource for Latch {
    fn acquire<'a>(&self, keys: &'a Keys, _: Site<'a>, args: AcquireArgs) -> ScriptCall<'a, Acquired> {
        ScriptCall::new(&WAIT, keys.all(), latch_wait).id(args.ticket.id).millis(args.ticket_ttl).number(args.not_after)
    }

    fn cancel<'a>(&self, keys: &'a Keys, site: Site<'a>, ticket: Ticket, _: bool) -> ScriptCall<'a, Cancelled> {
        ScriptCall::new(&CANCEL, keys.all(), latch_cancelled).id(ticket.id).inbox(site)
    }

    fn heartbeat<'a>(&self, keys: &'a Keys, site: Site<'a>, tickets: &[TicketArgs]) -> Option<HeartbeatCall<'a>> {
        let call = ScriptCall::new(&HEARTBEAT, keys.all(), latch_heartbeat_reply).inbox(site);
        Some(call.each(tickets, |call, (ticket, ttl)| call.id(ticket.id).millis(*ttl)))
    }

    fn held(&self) -> Option<&dyn Held> {
        None
    }
}

impl Latch {
    pub(super) fn set<'a>(
        self,
        keys: &'a Keys,
        site: Site<'a>,
        copy: CallCopy,
        count: u32,
        ttl: Duration,
    ) -> ScriptCall<'a, LatchSet> {
        copy.put(ScriptCall::new(&SET, keys.all(), latch_set), site, |call| call.number(count).millis(ttl))
    }

    pub(super) fn count_down<'a>(self, keys: &'a Keys, site: Site<'a>, copy: CallCopy) -> ScriptCall<'a, CountedDown> {
        copy.put(ScriptCall::new(&COUNT_DOWN, keys.all(), counted_down), site, |call| call)
    }

    pub(super) fn delete<'a>(self, keys: &'a Keys, site: Site<'a>, copy: CallCopy) -> ScriptCall<'a, LatchDeleted> {
        copy.put(ScriptCall::new(&DELETE, keys.all(), latch_deleted), site, |call| call)
    }

    /// `listed`: how many waiters are wanted.
    pub(super) fn inspect(self, keys: &Keys, listed: u32) -> ScriptCall<'_, LatchInspected> {
        ScriptCall::new(&INSPECT, keys.all(), latch_inspected).number(listed)
    }
}

impl Scripts<'_> {
    pub(crate) async fn set_latch(
        self,
        keys: &Keys,
        copy: CallCopy,
        count: u32,
        ttl: Duration,
    ) -> Result<LatchSet, Failure> {
        self.send(Latch.set(keys, self.site(keys), copy, count, ttl)).await
    }

    pub(crate) async fn count_down_latch(self, keys: &Keys, copy: CallCopy) -> Result<CountedDown, Failure> {
        self.send(Latch.count_down(keys, self.site(keys), copy)).await
    }

    pub(crate) async fn delete_latch(self, keys: &Keys, copy: CallCopy) -> Result<LatchDeleted, Failure> {
        self.send(Latch.delete(keys, self.site(keys), copy)).await
    }

    pub(crate) async fn inspect_latch(self, keys: &Keys, listed: u32) -> Result<LatchInspected, Failure> {
        self.send(Latch.inspect(keys, listed)).await
    }
}
