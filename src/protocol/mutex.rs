//! The lock: its scripts as typed calls. Only this module knows the order of their keys and arguments.

use futures::FutureExt;
use futures::future::BoxFuture;

use super::attempt_id::AttemptId;
use super::call::{ScriptCall, Scripts, Site};
use super::failure::Failure;
use super::key::Keys;
use super::reply::{
    Acquired, AskedAhead, Cancelled, HeartbeatReply, Released, Requeued, ServerMillis, acquired, asked_ahead,
    cancelled, heartbeat_reply, released, requeued,
};
use super::resource::{AcquireArgs, AheadArgs, Held, Rehearsal, Resource, TicketArgs};
use super::script::{Script, scripts};
use super::ticket::Ticket;
use reply::{ForceReleased, Inspected, force_released, inspected};

mod rehearsal;
pub(crate) mod reply;

scripts! {
    "mutex", "lock":
    ACQUIRE = "acquire",
    ASK_AHEAD = "ask_ahead",
    CANCEL = "cancel",
    FORCE_RELEASE = "force_release",
    HEARTBEAT = "heartbeat",
    INSPECT = "inspect",
    RELEASE = "release",
    RENEW = "renew",
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Mutex;

impl Resource for Mutex {
    fn acquire<'a>(&self, keys: &'a Keys, site: Site<'a>, args: AcquireArgs) -> ScriptCall<'a, Acquired> {
        ScriptCall::new(&ACQUIRE, keys.all(), acquired)
            .id(args.ticket.id)
            .mode(args.wait)
            .millis(args.ticket.lease)
            .number(args.ticket.claim.amount())
            .millis(args.ticket_ttl)
            .number(args.max_waiters)
            .number(args.not_after)
            .site(site)
    }

    fn cancel<'a>(&self, keys: &'a Keys, site: Site<'a>, ticket: Ticket, from_tail: bool) -> ScriptCall<'a, Cancelled> {
        ScriptCall::new(&CANCEL, keys.all(), cancelled).ticket(&ticket).end(from_tail).site(site)
    }

    fn heartbeat<'a>(&self, keys: &'a Keys, site: Site<'a>, tickets: &[TicketArgs]) -> ScriptCall<'a, HeartbeatReply> {
        ScriptCall::new(&HEARTBEAT, keys.all(), heartbeat_reply).site(site).tickets(tickets)
    }

    fn held(&self) -> Option<&dyn Held> {
        Some(self)
    }

    fn rehearse<'a>(&self, rehearsal: Rehearsal<'a>) -> BoxFuture<'a, Result<ServerMillis, Failure>> {
        rehearsal::rehearse(rehearsal).boxed()
    }

    fn tidy<'a>(&self, rehearsal: Rehearsal<'a>) -> BoxFuture<'a, ()> {
        rehearsal.cancel_tickets(1).boxed()
    }
}

impl Held for Mutex {
    fn release<'a>(&self, keys: &'a Keys, site: Site<'a>, id: AttemptId) -> ScriptCall<'a, Released> {
        ScriptCall::new(&RELEASE, keys.all(), released).id(id).site(site).next(site, None)
    }

    fn requeue<'a>(&self, keys: &'a Keys, site: Site<'a>, id: AttemptId, next: TicketArgs) -> ScriptCall<'a, Requeued> {
        ScriptCall::new(&RELEASE, keys.all(), requeued).id(id).site(site).next(site, Some(next))
    }

    fn ask_ahead<'a>(&self, keys: &'a Keys, args: AheadArgs) -> Option<ScriptCall<'a, AskedAhead>> {
        let call = ScriptCall::new(&ASK_AHEAD, keys.all(), asked_ahead)
            .id(args.held)
            .number(args.known.get())
            .millis(args.ticket.lease)
            .number(args.ticket.claim.amount())
            .ticket(&args.ticket)
            .millis(args.ticket.ttl())
            .number(args.not_after);
        Some(call)
    }

    fn renewal(&self) -> &'static Script {
        &RENEW
    }
}

/// `holder` is passed as it is stored, because another program may have written it.
pub(super) fn force_release<'a>(keys: &'a Keys, site: Site<'a>, holder: &'a str) -> ScriptCall<'a, ForceReleased> {
    ScriptCall::new(&FORCE_RELEASE, keys.all(), force_released).text(holder).site(site)
}

pub(super) fn inspect(keys: &Keys) -> ScriptCall<'_, Inspected> {
    ScriptCall::new(&INSPECT, keys.all(), inspected)
}

impl Scripts<'_> {
    pub(crate) async fn inspect_lock(self, keys: &Keys) -> Result<Inspected, Failure> {
        self.send(inspect(keys)).await
    }

    pub(crate) async fn force_release_lock(self, keys: &Keys, holder: &str) -> Result<ForceReleased, Failure> {
        self.send(force_release(keys, self.site(keys), holder)).await
    }
}
