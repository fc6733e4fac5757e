//! The lock: its scripts, and those that no other resource has as typed calls.

use super::call::{ScriptCall, Scripts, Site};
use super::failure::Failure;
use super::key::Keys;
use super::leased::{LeaseScripts, Leased};
use super::script::scripts;
use reply::{ForceReleased, Inspected, force_released, inspected};

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

pub(super) const MUTEX: Leased = Leased {
    scripts: &LeaseScripts {
        acquire: &ACQUIRE,
        ask_ahead: Some(&ASK_AHEAD),
        cancel: &CANCEL,
        give_back: None,
        heartbeat: &HEARTBEAT,
        release: &RELEASE,
        renew: &RENEW,
    },
    limit: None,
};

/// `holder` is passed as it is stored, because another program may have written it.
pub(super) fn force_release<'a>(keys: &'a Keys, site: Site<'a>, holder: &'a str) -> ScriptCall<'a, ForceReleased> {
    ScriptCall::new(&FORCE_RELEASE, keys.all(), force_released).text(holder).site(site)
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
