//! Locks in the format of Redisson, which Java programs hold as well: the scripts as typed calls. The script of the
//! lock renews them, because it takes any hash with the attempt id as a field.
//!
//! | Redisson writes | spelled | contents |
//! |---|---|---|
//! | the lock | the name itself | a hash: the owner, `<client uuid>:<thread or attempt>`, and how often it has entered |
//! | the channel | `redisson_lock__channel:{<name>}` | `0` when the lock is released |
//! | the counter of a fenced lock | `redisson_lock_token:{<name>}` | the last token. It has no TTL |
//!
//! A name with a `{` has no further braces around it.

use std::time::Duration;

use super::attempt_id::AttemptId;
use super::call::{ScriptCall, Scripts, Site};
use super::drop_waiters::{DropArgs, Dropped};
use super::failure::Failure;
use super::fields::Fields;
use super::key::Keys;
use super::mutex::MUTEX;
use super::reply::{Acquired, AskedAhead, Cancelled, Released, Requeued, ServerMillis, Timed, acquired};
use super::resource::{AcquireArgs, AheadArgs, HeartbeatCall, Held, Resource, TicketArgs};
use super::script::{Script, scripts};
use super::ticket::Ticket;

scripts! {
    "redisson", "redisson":
    ACQUIRE = "acquire",
    ACQUIRE_FENCED = "acquire_fenced",
    INSPECT = "inspect",
    RELEASE = "release",
}

/// A lock that Java programs share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared {
    pub(super) fenced: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedInspected {
    /// The owner as it is stored, how often it has entered, and the rest of the lease. `None`: the lock is free.
    pub(crate) owner: Option<(String, u64, Option<Duration>)>,
    pub(crate) now: ServerMillis,
}

impl Resource for Shared {
    fn acquire<'a>(&self, keys: &'a Keys, site: Site<'a>, args: AcquireArgs) -> ScriptCall<'a, Acquired> {
        let AcquireArgs { ticket, not_after, tries_channel, .. } = args;
        let call = if self.fenced {
            let call = ScriptCall::new(&ACQUIRE_FENCED, keys.all().chain(keys.beside()), acquired);
            call.id(ticket.id).millis(ticket.lease).number(ticket.claim.amount())
        } else {
            ScriptCall::new(&ACQUIRE, keys.all(), acquired).id(ticket.id).millis(ticket.lease)
        };
        call.number(not_after).spelled(probe(keys, tries_channel)).text(site.how())
    }

    fn cancel<'a>(&self, keys: &'a Keys, site: Site<'a>, ticket: Ticket, _: bool) -> ScriptCall<'a, Cancelled> {
        self.release(keys, site, ticket.id, true).read_as(cancelled)
    }

    fn heartbeat<'a>(&self, _: &'a Keys, _: Site<'a>, _: &[TicketArgs]) -> Option<HeartbeatCall<'a>> {
        None
    }

    fn held(&self) -> Option<&dyn Held> {
        Some(self)
    }
}

impl Held for Shared {
    fn release<'a>(&self, keys: &'a Keys, site: Site<'a>, id: AttemptId, _: bool) -> ScriptCall<'a, Released> {
        woken(ScriptCall::new(&RELEASE, keys.all(), released).id(id), keys, site, 0)
    }

    fn requeue<'a>(&self, keys: &'a Keys, site: Site<'a>, id: AttemptId, _: TicketArgs) -> ScriptCall<'a, Requeued> {
        self.release(keys, site, id, false).read_as(released_only)
    }

    fn ask_ahead<'a>(&self, _: &'a Keys, _: AheadArgs<'_>) -> Option<ScriptCall<'a, AskedAhead>> {
        None
    }

    fn drop_waiters<'a>(&self, _: &'a Keys, _: Site<'a>, _: DropArgs) -> Option<ScriptCall<'a, Timed<Dropped>>> {
        None
    }

    fn renewal(&self) -> &'static Script {
        MUTEX.renewal()
    }
}

/// The channel to which the right to publish is tried, or nothing.
pub(super) fn probe(keys: &Keys, tries_channel: bool) -> String {
    if tries_channel { format!("{}:check", keys.channel()) } else { String::new() }
}

/// Nobody is queued.
pub(super) fn released_only(fields: &mut Fields<'_>) -> Option<Requeued> {
    let (word, listeners, now) = (fields.word()?, fields.number()?, fields.number()?);
    match word {
        "RELEASED" => Some(Requeued::Released { listeners, now }),
        "NOT_HELD" => Some(Requeued::NotHeld { now }),
        _ => None,
    }
}

pub(super) fn released(fields: &mut Fields<'_>) -> Option<Released> {
    Some(match released_only(fields)? {
        Requeued::Released { now, .. } => Released::Released { call_again: false, messages: Vec::new(), now },
        Requeued::NotHeld { now } => Released::NotHeld { call_again: false, now },
        Requeued::Granted { .. } | Requeued::Queued { .. } => return None,
    })
}

pub(super) fn cancelled(fields: &mut Fields<'_>) -> Option<Cancelled> {
    let released = released(fields)?;
    let was_held = matches!(released, Released::Released { .. });
    let (Released::Released { now, .. } | Released::NotHeld { now, .. }) = released;
    Some(Cancelled { was_held, call_again: false, now })
}

fn woken<'a, T>(call: ScriptCall<'a, T>, keys: &'a Keys, site: Site<'a>, not_after: ServerMillis) -> ScriptCall<'a, T> {
    call.text(keys.channel()).text(site.how()).number(not_after)
}

/// `owner` is passed as it is stored, because a Java program may have written it. Whether it held the lock.
pub(super) fn force_release<'a>(
    keys: &'a Keys,
    site: Site<'a>,
    owner: &'a str,
    not_after: ServerMillis,
) -> ScriptCall<'a, Timed<bool>> {
    woken(ScriptCall::new(&RELEASE, keys.all(), forced).text(owner), keys, site, not_after)
}

pub(super) fn forced(fields: &mut Fields<'_>) -> Option<Timed<bool>> {
    let was_held = match fields.word()? {
        "STALE" => return Some((None, fields.number()?)),
        "RELEASED" => true,
        "NOT_HELD" => false,
        _ => return None,
    };
    fields.number()?;
    Some((Some(was_held), fields.number()?))
}

pub(super) fn inspect(keys: &Keys) -> ScriptCall<'_, SharedInspected> {
    ScriptCall::new(&INSPECT, keys.all(), inspected)
}

pub(super) fn inspected(fields: &mut Fields<'_>) -> Option<SharedInspected> {
    let now = fields.number()?;
    let (owner, entries, left) = (fields.word()?, fields.word()?, fields.ttl()?);
    // An entry that is no number was not written by Redisson, and is in the way all the same.
    let owner = (!owner.is_empty()).then(|| (owner.to_owned(), entries.parse().unwrap_or_default(), left));
    Some(SharedInspected { owner, now })
}

impl Scripts<'_> {
    pub(crate) async fn inspect_shared(self, keys: &Keys) -> Result<SharedInspected, Failure> {
        keys.check_slots(self.connection.topology())?;
        self.send(inspect(keys)).await
    }

    /// Takes the lock from that owner.
    pub(crate) async fn force_release_shared(
        self,
        keys: &Keys,
        owner: &str,
        not_after: ServerMillis,
    ) -> Result<Timed<bool>, Failure> {
        self.send(force_release(keys, self.site(keys), owner, not_after)).await
    }
}
