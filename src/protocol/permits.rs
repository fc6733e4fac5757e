//! Semaphores and read-write locks: their scripts, and those that no lock has as typed calls.

use super::call::{ScriptCall, Scripts, Site};
use super::change::{ChangeArgs, Changed, changed};
use super::failure::Failure;
use super::key::Keys;
use super::leased::{LeaseScripts, Leased};
use super::limits::WRITE;
use super::reply::{ServerMillis, Timed};
use super::script::scripts;
use super::ticket::{Claim, Ticket};
use super::token::Token;
use reply::{Drained, PermitsInspected, PermitsRevoked, drained, limited, permits_inspected, permits_revoked};

pub(crate) mod reply;

scripts! {
    "permits", "permit":
    ACQUIRE = "acquire",
    ASK_AHEAD = "ask_ahead",
    CANCEL = "cancel",
    CHANGE = "change",
    DRAIN = "drain",
    DROP_WAITERS = "drop_waiters",
    FORCE_RELEASE = "force_release",
    GIVE_BACK = "give_back",
    GO_ON = "go_on",
    HEARTBEAT = "heartbeat",
    INSPECT = "inspect",
    LIMIT = "limit",
    RELEASE = "release",
    RENEW = "renew",
    RENEW_SHORT = "renew_short",
}

/// Units that are taken and given back, with the limit of the call site.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permits {
    pub(super) limit: u32,
}

impl Permits {
    pub(super) const READ_WRITE: Self = Self { limit: WRITE };

    pub(super) fn leased(self) -> Leased {
        const SCRIPTS: &LeaseScripts = &LeaseScripts {
            acquire: &ACQUIRE,
            ask_ahead: &ASK_AHEAD,
            cancel: &CANCEL,
            drop_waiters: &DROP_WAITERS,
            give_back: Some(&GIVE_BACK),
            go_on: Some(&GO_ON),
            heartbeat: &HEARTBEAT,
            release: &RELEASE,
            renew: &RENEW,
            renew_short: Some(&RENEW_SHORT),
        };
        Leased { scripts: SCRIPTS, limit: Some(self.limit) }
    }

    pub(super) fn change<'a>(self, keys: &'a Keys, site: Site<'a>, args: ChangeArgs) -> ScriptCall<'a, Changed> {
        ScriptCall::new(&CHANGE, keys.all(), changed)
            .id(args.old)
            .id(args.new)
            .number(args.units)
            .millis(args.lease)
            .number(self.limit)
            .number(args.not_after)
            .site(site)
            .maybe_id(args.rest)
            .maybe_number(args.token.map(Token::get))
    }

    pub(super) fn drain<'a>(
        self,
        keys: &'a Keys,
        site: Site<'a>,
        (ticket, not_after): (Ticket, ServerMillis),
    ) -> ScriptCall<'a, Drained> {
        ScriptCall::new(&DRAIN, keys.all(), drained)
            .id(ticket.id)
            .millis(ticket.lease)
            .number(self.limit)
            .number(not_after)
            .site(site)
    }

    /// Stores the limit, which overrides those of all call sites.
    pub(super) fn store<'a>(
        self,
        keys: &'a Keys,
        site: Site<'a>,
        not_after: ServerMillis,
    ) -> ScriptCall<'a, Timed<bool>> {
        ScriptCall::new(&LIMIT, keys.all(), limited).number(self.limit).number(not_after).site(site)
    }

    /// The attempt ids are passed as they are stored, because another program may have written them.
    pub(super) fn force_release<'a>(
        self,
        keys: &'a Keys,
        site: Site<'a>,
        ids: &'a [String],
    ) -> ScriptCall<'a, PermitsRevoked> {
        let call = ScriptCall::new(&FORCE_RELEASE, keys.all(), permits_revoked).number(self.limit).site(site);
        ids.iter().fold(call, |call, id| call.text(id))
    }

    /// `listed`: how many tickets of the queue are wanted.
    pub(super) fn inspect(self, keys: &Keys, listed: u32) -> ScriptCall<'_, PermitsInspected> {
        ScriptCall::new(&INSPECT, keys.all(), permits_inspected).number(self.limit).number(listed)
    }
}

impl Scripts<'_> {
    /// Changes a hold of a semaphore or a read-write lock. The following calls are for these two as well.
    pub(crate) async fn change(self, keys: &Keys, limit: u32, args: ChangeArgs) -> Result<Changed, Failure> {
        self.send(Permits { limit }.change(keys, self.site(keys), args)).await
    }

    /// Takes all permits that are free, for the attempt of the ticket. How many the ticket asks for does not matter.
    pub(crate) async fn drain(self, keys: &Keys, ticket: Ticket, not_after: ServerMillis) -> Result<Drained, Failure> {
        let Claim::Units { limit, .. } = ticket.claim else { return Err(Failure::NoSuchRequest(keys.kind.word())) };
        self.send(Permits { limit }.drain(keys, self.site(keys), (ticket, not_after))).await
    }

    pub(crate) async fn set_limit(
        self,
        keys: &Keys,
        limit: u32,
        not_after: ServerMillis,
    ) -> Result<Timed<bool>, Failure> {
        self.send(Permits { limit }.store(keys, self.site(keys), not_after)).await
    }

    pub(crate) async fn force_release_permits(
        self,
        keys: &Keys,
        limit: u32,
        ids: &[String],
    ) -> Result<PermitsRevoked, Failure> {
        self.send(Permits { limit }.force_release(keys, self.site(keys), ids)).await
    }

    pub(crate) async fn inspect(self, keys: &Keys, limit: u32, listed: u32) -> Result<PermitsInspected, Failure> {
        self.send(Permits { limit }.inspect(keys, listed)).await
    }
}
