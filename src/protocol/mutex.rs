//! The lock: its scripts, and those that no other resource has as typed calls.

use super::attempt_id::AttemptId;
use super::call::{ScriptCall, Scripts, Site};
use super::change::{Changed, changed};
use super::failure::Failure;
use super::key::Keys;
use super::leased::{LeaseScripts, Leased};
use super::reply::ServerMillis;
use super::script::scripts;
use super::ticket::Ticket;
use reply::{ForceReleased, Inspected, force_released, inspected};

pub(crate) mod reply;

scripts! {
    "mutex", "lock":
    ACQUIRE = "acquire",
    ASK_AHEAD = "ask_ahead",
    CANCEL = "cancel",
    DROP_WAITERS = "drop_waiters",
    FORCE_RELEASE = "force_release",
    HEARTBEAT = "heartbeat",
    INSPECT = "inspect",
    RELEASE = "release",
    RENEW = "renew",
    RESUME = "resume",
}

pub(super) const MUTEX: Leased = Leased {
    scripts: &LeaseScripts {
        acquire: &ACQUIRE,
        ask_ahead: &ASK_AHEAD,
        cancel: &CANCEL,
        drop_waiters: &DROP_WAITERS,
        give_back: None,
        go_on: None,
        heartbeat: &HEARTBEAT,
        release: &RELEASE,
        renew: &RENEW,
        renew_short: None,
    },
    limit: None,
};

/// `holder` is passed as it is stored, because another program may have written it.
pub(super) fn force_release<'a>(keys: &'a Keys, site: Site<'a>, holder: &'a str) -> ScriptCall<'a, ForceReleased> {
    ScriptCall::new(&FORCE_RELEASE, keys.all(), force_released).text(holder).site(site)
}

/// Gives the hold `old` to the attempt of the ticket.
pub(super) fn resume(
    keys: &Keys,
    old: AttemptId,
    (ticket, not_after): (Ticket, ServerMillis),
) -> ScriptCall<'_, Changed> {
    ScriptCall::new(&RESUME, keys.all(), changed).id(old).id(ticket.id).millis(ticket.lease).number(not_after)
}

/// `listed`: how many tickets of the queue are wanted.
pub(super) fn inspect(keys: &Keys, listed: u32) -> ScriptCall<'_, Inspected> {
    ScriptCall::new(&INSPECT, keys.all(), inspected).number(listed)
}

impl Scripts<'_> {
    pub(crate) async fn inspect_lock(self, keys: &Keys, listed: u32) -> Result<Inspected, Failure> {
        self.send(inspect(keys, listed)).await
    }

    pub(crate) async fn force_release_lock(self, keys: &Keys, holder: &str) -> Result<ForceReleased, Failure> {
        self.send(force_release(keys, self.site(keys), holder)).await
    }
}
