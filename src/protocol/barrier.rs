//! The barrier: its scripts as typed calls. Only this module knows the order of their keys and arguments.

use std::time::Duration;

use super::attempt_id::AttemptId;
use super::call::{ScriptCall, Scripts, Site};
use super::copy::CallCopy;
use super::failure::Failure;
use super::key::Keys;
use super::reply::{Acquired, Cancelled};
use super::resource::{AcquireArgs, HeartbeatCall, Held, Resource, TicketArgs};
use super::script::scripts;
use super::ticket::Ticket;
use reply::{BarrierInspected, BarrierReset, Leaving, arrived, heartbeat_reply, inspected, leaving, left, reset};

pub(crate) mod end;
pub(crate) mod reply;

scripts! {
    "barrier", "barrier":
    ARRIVE = "arrive",
    CANCEL = "cancel",
    HEARTBEAT = "heartbeat",
    INSPECT = "inspect",
    LEAVE = "leave",
    RESET = "reset",
}

/// The parties of a barrier, which wait and never hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parties {
    pub(super) parties: u32,
    /// For how long after its arrival a party, or a copy of its request, may ask, in milliseconds.
    pub(super) keep: u64,
    /// Whether they are inside a double barrier, until they have all left.
    pub(super) stay: bool,
    /// The generation after which a party has come inside that waits to enter.
    pub(super) of: Option<u64>,
}

impl Resource for Parties {
    fn acquire<'a>(&self, keys: &'a Keys, site: Site<'a>, args: AcquireArgs) -> ScriptCall<'a, Acquired> {
        let call = ScriptCall::new(&ARRIVE, keys.all(), arrived).id(args.ticket.id).number(self.parties);
        call.millis(args.ticket_ttl)
            .number(self.keep)
            .number(args.not_after)
            .inbox(site)
            .number(self.stay)
            .maybe_number(self.of)
    }

    fn cancel<'a>(&self, keys: &'a Keys, site: Site<'a>, ticket: Ticket, _: bool) -> ScriptCall<'a, Cancelled> {
        ScriptCall::new(&CANCEL, keys.all(), left).id(ticket.id).number(self.keep).inbox(site)
    }

    fn heartbeat<'a>(&self, keys: &'a Keys, site: Site<'a>, tickets: &[TicketArgs]) -> Option<HeartbeatCall<'a>> {
        let call = ScriptCall::new(&HEARTBEAT, keys.all(), heartbeat_reply).inbox(site);
        Some(call.each(tickets, |call, (ticket, ttl)| call.id(ticket.id).millis(*ttl)))
    }

    fn held(&self) -> Option<&dyn Held> {
        None
    }
}

/// Breaks the generation that waits.
pub(super) fn reset_call<'a>(keys: &'a Keys, site: Site<'a>, copy: CallCopy) -> ScriptCall<'a, BarrierReset> {
    copy.put(ScriptCall::new(&RESET, keys.all(), reset), site, |call| call)
}

/// A party inside a double barrier is ready to leave.
pub(super) fn leave<'a>(keys: &'a Keys, site: Site<'a>, id: AttemptId, keep: u64) -> ScriptCall<'a, Leaving> {
    ScriptCall::new(&LEAVE, keys.all(), leaving).id(id).number(keep).inbox(site)
}

/// `listed`: how many parties are wanted.
pub(super) fn inspect(keys: &Keys, listed: u32) -> ScriptCall<'_, BarrierInspected> {
    ScriptCall::new(&INSPECT, [keys.main(), keys.ending(":tickets")].into_iter(), inspected).number(listed)
}

impl Scripts<'_> {
    pub(crate) async fn reset_barrier(self, keys: &Keys, copy: CallCopy) -> Result<BarrierReset, Failure> {
        self.send(reset_call(keys, self.site(keys), copy)).await
    }

    pub(crate) async fn leave_barrier(self, keys: &Keys, id: AttemptId, keep: u64) -> Result<Leaving, Failure> {
        self.send(leave(keys, self.site(keys), id, keep)).await
    }

    pub(crate) async fn inspect_barrier(self, keys: &Keys, listed: u32) -> Result<BarrierInspected, Failure> {
        self.send(inspect(keys, listed)).await
    }
}

/// For how long after its arrival a party, or a copy of its request, may ask: a heartbeat begins within a ticket's
/// life, and is repeated for the retry timeout, as the arrival is.
pub(crate) fn keep(ticket_ttl: Duration, retry_timeout: Duration, command_timeout: Duration) -> u64 {
    let keep = ticket_ttl.saturating_add(retry_timeout).saturating_add(command_timeout);
    u64::try_from(keep.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::protocol::kind::Kind;

    #[test]
    fn an_end_is_remembered_for_as_long_as_anybody_may_ask() {
        let seconds = Duration::from_secs;
        assert_eq!(keep(seconds(20), seconds(10), seconds(3)), 33_000);
        assert_eq!(keep(seconds(20), Duration::MAX, seconds(3)), u64::MAX);
    }

    #[test]
    fn an_arrival_and_a_leave_say_for_how_long() {
        let kind = Kind::Barrier { parties: 2, keep: 33_000 };
        let keys = Keys::new("p", kind, "n").unwrap();
        let ticket = kind.ticket(AttemptId { client: Uuid::nil(), n: 1 }, Duration::from_secs(30), 0);
        let site = Site { inbox_prefix: "p:inbox:", slot: None, counts_everyone: true, listens: false };
        let args = AcquireArgs {
            ticket,
            ticket_ttl: ticket.ttl(),
            wait: true,
            max_waiters: 0,
            not_after: 7,
            tries_channel: false,
        };
        let resource = Parties { parties: 2, keep: 33_000, stay: false, of: None };
        fn words<T>(call: ScriptCall<'_, T>) -> Vec<String> {
            call.args.iter().map(|arg| format!("{:?}", arg.as_arg())).collect()
        }
        let (arrival, leave) =
            (words(resource.acquire(&keys, site, args)), words(resource.cancel(&keys, site, ticket, false)));
        assert_eq!(arrival[1..5], ["2", "30000", "33000", "7"]);
        assert_eq!(leave[1], "33000");
    }
}
