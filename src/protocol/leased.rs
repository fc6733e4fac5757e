//! What is held for a lease: locks and permits. Both have the same typed calls, but for the limit of permits. Only this
//! module knows the order of their keys and arguments.

use std::sync::LazyLock;

use super::attempt_id::AttemptId;
use super::call::{ScriptCall, Site};
use super::drop_waiters::{DropArgs, Dropped, dropped};
use super::key::Keys;
use super::reply::{
    Acquired, AskedAhead, Cancelled, Released, Requeued, Timed, acquired, asked_ahead, cancelled, heartbeat_reply,
    released, requeued,
};
use super::resource::{AcquireArgs, AheadArgs, HeartbeatCall, Held, Place, Resource, TicketArgs};
use super::script::Script;
use super::ticket::Ticket;

/// The scripts of one folder.
#[derive(Debug)]
pub(super) struct LeaseScripts {
    pub(super) acquire: &'static LazyLock<Script>,
    pub(super) ask_ahead: &'static LazyLock<Script>,
    pub(super) cancel: &'static LazyLock<Script>,
    pub(super) drop_waiters: &'static LazyLock<Script>,
    /// `None`: a hold has no parts.
    pub(super) give_back: Option<&'static LazyLock<Script>>,
    /// `None`: a cohort that holds has no ticket.
    pub(super) go_on: Option<&'static LazyLock<Script>>,
    pub(super) heartbeat: &'static LazyLock<Script>,
    pub(super) release: &'static LazyLock<Script>,
    pub(super) renew: &'static LazyLock<Script>,
    /// `None`: no hold is stored short.
    pub(super) renew_short: Option<&'static LazyLock<Script>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Leased {
    pub(super) scripts: &'static LeaseScripts,
    /// The limit of permits.
    pub(super) limit: Option<u32>,
}

impl Resource for Leased {
    fn acquire<'a>(&self, keys: &'a Keys, site: Site<'a>, args: AcquireArgs) -> ScriptCall<'a, Acquired> {
        ScriptCall::new(self.scripts.acquire, keys.all(), acquired)
            .id(args.ticket.id)
            .mode(args.wait, args.ticket.claim)
            .millis(args.ticket.lease)
            .number(args.ticket.claim.amount())
            .limit(self.limit)
            .millis(args.ticket_ttl)
            .number(args.max_waiters)
            .number(args.not_after)
            .site(site)
    }

    fn cancel<'a>(&self, keys: &'a Keys, site: Site<'a>, ticket: Ticket, from_tail: bool) -> ScriptCall<'a, Cancelled> {
        if let Some(give_back) = self.scripts.give_back.filter(|_| ticket.rest > 0) {
            let call = ScriptCall::new(give_back, keys.all(), cancelled);
            return call.id(ticket.id).number(ticket.rest).limit(self.limit).site(site);
        }
        let call = ScriptCall::new(self.scripts.cancel, keys.all(), cancelled);
        call.ticket(&ticket).end(from_tail).limit(self.limit).site(site)
    }

    fn heartbeat<'a>(&self, keys: &'a Keys, site: Site<'a>, tickets: &[TicketArgs]) -> Option<HeartbeatCall<'a>> {
        let call = ScriptCall::new(self.scripts.heartbeat, keys.all(), heartbeat_reply);
        Some(call.limit(self.limit).site(site).tickets(tickets))
    }

    fn held(&self) -> Option<&dyn Held> {
        Some(self)
    }
}

impl Held for Leased {
    fn release<'a>(&self, keys: &'a Keys, site: Site<'a>, id: AttemptId, _: bool) -> ScriptCall<'a, Released> {
        let call = ScriptCall::new(self.scripts.release, keys.all(), released);
        call.id(id).limit(self.limit).site(site).next(site, None)
    }

    fn requeue<'a>(&self, keys: &'a Keys, site: Site<'a>, id: AttemptId, next: TicketArgs) -> ScriptCall<'a, Requeued> {
        let call = ScriptCall::new(self.scripts.release, keys.all(), requeued);
        call.id(id).limit(self.limit).site(site).next(site, Some(next))
    }

    fn ask_ahead<'a>(&self, keys: &'a Keys, args: AheadArgs<'_>) -> Option<ScriptCall<'a, AskedAhead>> {
        if !keys.kind.asks_ahead() {
            return None;
        }
        let ticket = match args.place {
            Place::Next(ticket) => ticket,
            Place::Has(tickets) => {
                let call = ScriptCall::new(self.scripts.go_on?, keys.all(), asked_ahead);
                let call = call.id(args.held).millis(args.lease).limit(self.limit);
                return Some(tickets.iter().fold(call, ScriptCall::ticket));
            }
        };
        let call = ScriptCall::new(self.scripts.ask_ahead, keys.all(), asked_ahead)
            .id(args.held)
            .number(args.known.get())
            .millis(args.lease)
            .number(args.budget)
            .ticket(&ticket)
            .millis(ticket.ttl())
            .number(args.not_after);
        Some(call)
    }

    fn drop_waiters<'a>(
        &self,
        keys: &'a Keys,
        site: Site<'a>,
        args: DropArgs,
    ) -> Option<ScriptCall<'a, Timed<Dropped>>> {
        let call = ScriptCall::new(self.scripts.drop_waiters, keys.all(), dropped);
        let call = match args.client {
            Some(client) => call.client(client),
            None => call.text(""),
        };
        Some(call.number(args.first).number(args.not_after).limit(self.limit).site(site))
    }

    fn renewal(&self) -> &'static Script {
        self.scripts.renew
    }

    fn renewal_short(&self) -> Option<&'static Script> {
        self.scripts.renew_short.map(|script| &**script)
    }
}
