//! Semaphores and read-write locks: their scripts as typed calls. Keys and arguments are put in their order here only.
use futures::FutureExt;
use futures::future::BoxFuture;

use super::attempt_id::AttemptId;
use super::call::{ScriptCall, Scripts, Site};
use super::failure::Failure;
use super::key::Keys;
use super::limits::WRITE;
use super::reply::{
    Acquired, AskedAhead, Cancelled, HeartbeatReply, Released, Requeued, ServerMillis, acquired, cancelled,
    heartbeat_reply, released, requeued,
};
use super::resource::{AcquireArgs, AheadArgs, Held, Rehearsal, Resource, TicketArgs};
use super::script::{Script, scripts};
use super::ticket::Ticket;
use reply::{Changed, Limited, PermitsInspected, changed, limited, permits_inspected};

mod change;
mod rehearsal;
pub(crate) mod reply;

pub(crate) use change::ChangeArgs;

scripts! {
    "permits", "permit":
    ACQUIRE = "acquire",
    CANCEL = "cancel",
    CHANGE = "change",
    HEARTBEAT = "heartbeat",
    INSPECT = "inspect",
    LIMIT = "limit",
    RELEASE = "release",
    RENEW = "renew",
}

/// Units that are taken and given back, with the limit of the call site.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permits {
    pub(super) limit: u32,
}

impl Permits {
    pub(super) const READ_WRITE: Self = Self { limit: WRITE };

    pub(super) fn change<'a>(self, keys: &'a Keys, site: Site<'a>, args: ChangeArgs) -> ScriptCall<'a, Changed> {
        ScriptCall::new(&CHANGE, keys.all(), changed)
            .id(args.old)
            .id(args.new)
            .number(args.units)
            .millis(args.lease)
            .number(self.limit)
            .number(args.not_after)
            .site(site)
    }

    /// Stores the limit, which overrides those of all call sites.
    pub(super) fn store<'a>(self, keys: &'a Keys, site: Site<'a>, not_after: ServerMillis) -> ScriptCall<'a, Limited> {
        ScriptCall::new(&LIMIT, keys.all(), limited).number(self.limit).number(not_after).site(site)
    }

    pub(super) fn inspect(self, keys: &Keys) -> ScriptCall<'_, PermitsInspected> {
        ScriptCall::new(&INSPECT, keys.all(), permits_inspected).number(self.limit)
    }
}

impl Resource for Permits {
    fn acquire<'a>(&self, keys: &'a Keys, site: Site<'a>, args: AcquireArgs) -> ScriptCall<'a, Acquired> {
        ScriptCall::new(&ACQUIRE, keys.all(), acquired)
            .id(args.ticket.id)
            .mode(args.wait)
            .millis(args.ticket.lease)
            .number(args.ticket.claim.amount())
            .number(self.limit)
            .millis(args.ticket_ttl)
            .number(args.max_waiters)
            .number(args.not_after)
            .site(site)
    }

    fn cancel<'a>(&self, keys: &'a Keys, site: Site<'a>, ticket: Ticket, from_tail: bool) -> ScriptCall<'a, Cancelled> {
        let call = ScriptCall::new(&CANCEL, keys.all(), cancelled);
        call.ticket(&ticket).end(from_tail).number(self.limit).site(site)
    }

    fn heartbeat<'a>(&self, keys: &'a Keys, site: Site<'a>, tickets: &[TicketArgs]) -> ScriptCall<'a, HeartbeatReply> {
        ScriptCall::new(&HEARTBEAT, keys.all(), heartbeat_reply).number(self.limit).site(site).tickets(tickets)
    }

    fn held(&self) -> Option<&dyn Held> {
        Some(self)
    }

    fn rehearse<'a>(&self, rehearsal: Rehearsal<'a>) -> BoxFuture<'a, Result<ServerMillis, Failure>> {
        rehearsal::rehearse(rehearsal).boxed()
    }

    fn tidy<'a>(&self, rehearsal: Rehearsal<'a>) -> BoxFuture<'a, ()> {
        rehearsal.cancel_tickets(WRITE).boxed()
    }
}

impl Held for Permits {
    fn release<'a>(&self, keys: &'a Keys, site: Site<'a>, id: AttemptId) -> ScriptCall<'a, Released> {
        ScriptCall::new(&RELEASE, keys.all(), released).id(id).number(self.limit).site(site).next(site, None)
    }

    fn requeue<'a>(&self, keys: &'a Keys, site: Site<'a>, id: AttemptId, next: TicketArgs) -> ScriptCall<'a, Requeued> {
        ScriptCall::new(&RELEASE, keys.all(), requeued).id(id).number(self.limit).site(site).next(site, Some(next))
    }

    /// Not needed: a cohort of writers, or for permits, releases and queues up in one step.
    fn ask_ahead<'a>(&self, _keys: &'a Keys, _args: AheadArgs) -> Option<ScriptCall<'a, AskedAhead>> {
        None
    }

    fn renewal(&self) -> &'static Script {
        &RENEW
    }
}

impl Scripts<'_> {
    /// Changes a hold of a semaphore or a read-write lock. The following calls are for these two as well.
    pub(crate) async fn change(self, keys: &Keys, limit: u32, args: ChangeArgs) -> Result<Changed, Failure> {
        self.send(Permits { limit }.change(keys, self.site(keys), args)).await
    }

    pub(crate) async fn set_limit(self, keys: &Keys, limit: u32, not_after: ServerMillis) -> Result<Limited, Failure> {
        self.send(Permits { limit }.store(keys, self.site(keys), not_after)).await
    }

    pub(crate) async fn inspect(self, keys: &Keys, limit: u32) -> Result<PermitsInspected, Failure> {
        self.send(Permits { limit }.inspect(keys)).await
    }
}
