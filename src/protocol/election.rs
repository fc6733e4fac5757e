//! Elections: their scripts as typed calls. The leader holds a lock, whose scripts acquire, release and cancel; the
//! scripts of the election keep a list of its changes, and notify the clients that watch it.

use super::attempt_id::AttemptId;
use super::call::{ScriptCall, Scripts, Site};
use super::drop_waiters::{DropArgs, Dropped};
use super::failure::Failure;
use super::key::Keys;
use super::latch::Latch;
use super::limits::MAX_CHANGES;
use super::mutex::MUTEX;
use super::reply::{Acquired, AskedAhead, Cancelled, Released, Requeued, Timed, released};
use super::resource::{AcquireArgs, AheadArgs, HeartbeatCall, Held, Resource, TicketArgs};
use super::script::{Script, scripts};
use super::ticket::Ticket;
use super::token::Token;

pub(crate) mod change;
mod look;

pub(crate) use change::What;
pub(crate) use look::{Announced, ElectionSeen};

scripts! {
    "election", "election":
    ANNOUNCE = "announce",
    HEARTBEAT = "heartbeat",
    LEADER = "leader",
    RELEASE = "release",
    RENEW = "renew",
    WATCH = "watch",
}

/// The leadership of an election: a lock with renewals and a release of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leading;

/// A wait for a change. It takes a ticket, and never a hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    /// The revision of the last change that the caller has read, or 0.
    pub(super) known: u64,
    /// The term that the caller takes for the present one.
    pub(super) leads: Option<Token>,
}

/// What a leader says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Announcement<'a> {
    pub(crate) term: Token,
    pub(crate) what: What,
    /// Grows with each announcement of a term.
    pub(crate) number: u64,
    pub(crate) label: &'a str,
    pub(crate) value: &'a str,
}

impl Resource for Leading {
    fn acquire<'a>(&self, keys: &'a Keys, site: Site<'a>, args: AcquireArgs) -> ScriptCall<'a, Acquired> {
        MUTEX.acquire(keys, site, args)
    }

    fn cancel<'a>(&self, keys: &'a Keys, site: Site<'a>, ticket: Ticket, from_tail: bool) -> ScriptCall<'a, Cancelled> {
        MUTEX.cancel(keys, site, ticket, from_tail)
    }

    fn heartbeat<'a>(&self, keys: &'a Keys, site: Site<'a>, tickets: &[TicketArgs]) -> Option<HeartbeatCall<'a>> {
        MUTEX.heartbeat(keys, site, tickets)
    }

    fn held(&self) -> Option<&dyn Held> {
        Some(self)
    }
}

impl Held for Leading {
    /// Also notes that the term has ended.
    fn release<'a>(&self, keys: &'a Keys, site: Site<'a>, id: AttemptId, _: bool) -> ScriptCall<'a, Released> {
        let of_changes = [keys.ending(":watchers"), keys.ending(":changes")];
        ScriptCall::new(&RELEASE, keys.all().chain(of_changes), released).id(id).site(site)
    }

    fn requeue<'a>(&self, keys: &'a Keys, site: Site<'a>, id: AttemptId, next: TicketArgs) -> ScriptCall<'a, Requeued> {
        MUTEX.requeue(keys, site, id, next)
    }

    /// Candidates form no cohorts.
    fn ask_ahead<'a>(&self, _: &'a Keys, _: AheadArgs<'_>) -> Option<ScriptCall<'a, AskedAhead>> {
        None
    }

    fn drop_waiters<'a>(
        &self,
        keys: &'a Keys,
        site: Site<'a>,
        args: DropArgs,
    ) -> Option<ScriptCall<'a, Timed<Dropped>>> {
        MUTEX.drop_waiters(keys, site, args)
    }

    fn renewal(&self) -> &'static Script {
        &RENEW
    }
}

impl Watch {
    fn news<'a, T>(self, call: ScriptCall<'a, T>) -> ScriptCall<'a, T> {
        call.number(self.known).number(self.leads.map_or(0, Token::get))
    }
}

impl Resource for Watch {
    fn acquire<'a>(&self, keys: &'a Keys, site: Site<'a>, args: AcquireArgs) -> ScriptCall<'a, Acquired> {
        let call = ScriptCall::new(&WATCH, keys.all(), look::watched).id(args.ticket.id).millis(args.ticket_ttl);
        self.news(call).number(args.not_after).inbox(site)
    }

    /// Who waits for an election waits as for a latch.
    fn cancel<'a>(&self, keys: &'a Keys, site: Site<'a>, ticket: Ticket, from_tail: bool) -> ScriptCall<'a, Cancelled> {
        Latch.cancel(keys, site, ticket, from_tail)
    }

    fn heartbeat<'a>(&self, keys: &'a Keys, site: Site<'a>, tickets: &[TicketArgs]) -> Option<HeartbeatCall<'a>> {
        let call = ScriptCall::new(&HEARTBEAT, keys.all(), look::watchers).inbox(site);
        Some(self.news(call).each(tickets, |call, (ticket, ttl)| call.id(ticket.id).millis(*ttl)))
    }

    fn held(&self) -> Option<&dyn Held> {
        None
    }
}

pub(super) fn announce<'a>(
    keys: &'a Keys,
    site: Site<'a>,
    id: AttemptId,
    said: Announcement<'a>,
) -> ScriptCall<'a, Announced> {
    let Announcement { term, what, number, label, value } = said;
    let of_changes = [keys.main(), keys.ending(":watchers"), keys.ending(":changes")];
    let call = ScriptCall::new(&ANNOUNCE, of_changes.into_iter(), look::announced).id(id);
    call.number(term.get()).text(what.word()).number(number).text(label).text(value).inbox(site)
}

/// Reads the leader and the changes after `known`, at most `most`.
pub(super) fn look(keys: &Keys, known: u64, most: u32) -> ScriptCall<'_, ElectionSeen> {
    let keys = [keys.main(), keys.ending(":changes")];
    ScriptCall::new(&LEADER, keys.into_iter(), look::seen).number(known).number(most)
}

impl Scripts<'_> {
    pub(crate) async fn announce(
        self,
        keys: &Keys,
        id: AttemptId,
        said: Announcement<'_>,
    ) -> Result<Announced, Failure> {
        self.send(announce(keys, self.site(keys), id, said)).await
    }

    /// Reads the leader, and the changes after the revision `known`, as many as are stored. `None`: only the last one.
    pub(crate) async fn look_at_election(self, keys: &Keys, known: Option<u64>) -> Result<ElectionSeen, Failure> {
        let most = known.map_or(1, |_| MAX_CHANGES);
        self.send(look(keys, known.unwrap_or_default(), most)).await
    }
}
