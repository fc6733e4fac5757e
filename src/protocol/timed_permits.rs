//! Permits that expire, in the format of Redisson's `RPermitExpirableSemaphore`, which Java programs take as well: the
//! scripts as typed calls.
//!
//! | who writes | spelled | contents |
//! |---|---|---|
//! | Redisson, too | the name itself | a string: the number of free permits. It has no TTL, unless Java gives it one |
//! | Redisson, too | `{<name>}:timeout` | a sorted set: the permits that are taken, by the ends of their leases. It has the TTL of the other |
//! | Redisson, too | the channel `redisson_sc:{<name>}` | how many threads to wake |
//! | bowline | `<prefix>:call:{<hash tag of the name>}:<permit id>` | a string: the permit is over; who has ended it |
//!
//! A name with a `{` has no further braces around it. The number of free permits is also a
//! [counter](super::shared_counter) in the format of Redisson, and is set and added to as such.

use std::time::Duration;

use super::attempt_id::AttemptId;
use super::call::{ScriptCall, Scripts, Site};
use super::copy::CallCopy;
use super::drop_waiters::{DropArgs, Dropped};
use super::facts::Form;
use super::failure::Failure;
use super::fields::Fields;
use super::key::Keys;
use super::redisson::{cancelled, forced, probe, released, released_only};
use super::renewed::{Renewed, renewed};
use super::reply::{Acquired, AskedAhead, Cancelled, Released, Requeued, ServerMillis, Timed, acquired};
use super::resource::{AcquireArgs, AheadArgs, HeartbeatCall, Held, RenewArgs, Resource, TicketArgs};
use super::script::{Script, scripts};
use super::ticket::Ticket;

scripts! {
    "timed_permits", "timed":
    ACQUIRE = "acquire",
    INSPECT = "inspect",
    RELEASE = "release",
    RENEW = "renew",
    SET = "set",
}

/// What the names of the scripts begin with.
pub(super) const PREFIX: &str = "timed_";

/// A permit that Java programs share.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimedPermit {
    /// For how long after its end a copy of the request that takes it may be executed.
    pub(super) keep: Duration,
}

/// For how long a mark is kept of what a request may do that a server executes within `answered_in` of its sending, or
/// never. The client's estimate of the server's clock may be late.
pub(crate) fn keep(answered_in: Duration) -> Duration {
    answered_in.saturating_add(Duration::from_secs(1))
}

/// What is stored of a semaphore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimedInspected {
    pub(crate) available: u64,
    pub(crate) acquired: u64,
    /// The ids of permits that are taken, and the rests of their leases.
    pub(crate) permits: Vec<(String, Option<Duration>)>,
    pub(crate) now: ServerMillis,
}

/// A call with all keys. `id` is that of the permit or of the call that the mark is about.
fn marked<'a, T>(
    script: &'static Script,
    keys: &'a Keys,
    id: &str,
    read: fn(&mut Fields<'_>) -> Option<T>,
) -> ScriptCall<'a, T> {
    ScriptCall::new(script, keys.all().chain(keys.beside()), read).marked(keys.mark(id))
}

impl Resource for TimedPermit {
    fn acquire<'a>(&self, keys: &'a Keys, site: Site<'a>, args: AcquireArgs) -> ScriptCall<'a, Acquired> {
        let AcquireArgs { ticket: Ticket { id, lease, .. }, not_after, tries_channel, .. } = args;
        let id = id.permit();
        let call = marked(&ACQUIRE, keys, &id, acquired).spelled(id).millis(lease).number(not_after);
        call.text(keys.channel()).text(site.how()).spelled(probe(keys, tries_channel))
    }

    /// A copy of the request may be executed later.
    fn cancel<'a>(&self, keys: &'a Keys, site: Site<'a>, ticket: Ticket, _: bool) -> ScriptCall<'a, Cancelled> {
        end(keys, site, ticket.id, self.keep).read_as(cancelled)
    }

    fn heartbeat<'a>(&self, _: &'a Keys, _: Site<'a>, _: &[TicketArgs]) -> Option<HeartbeatCall<'a>> {
        None
    }

    fn held(&self) -> Option<&dyn Held> {
        Some(self)
    }
}

impl Held for TimedPermit {
    fn release<'a>(&self, keys: &'a Keys, site: Site<'a>, id: AttemptId, resent: bool) -> ScriptCall<'a, Released> {
        end(keys, site, id, if resent { self.keep } else { Duration::ZERO })
    }

    fn requeue<'a>(&self, keys: &'a Keys, site: Site<'a>, id: AttemptId, _: TicketArgs) -> ScriptCall<'a, Requeued> {
        end(keys, site, id, self.keep).read_as(released_only)
    }

    fn ask_ahead<'a>(&self, _: &'a Keys, _: AheadArgs<'_>) -> Option<ScriptCall<'a, AskedAhead>> {
        None
    }

    fn drop_waiters<'a>(&self, _: &'a Keys, _: Site<'a>, _: DropArgs) -> Option<ScriptCall<'a, Timed<Dropped>>> {
        None
    }

    fn renewal(&self) -> &'static Script {
        &RENEW
    }

    fn renew<'a>(&self, holds: &[RenewArgs<'a>], _: Form) -> ScriptCall<'a, Renewed> {
        let keys = holds.iter().filter_map(|hold| hold.keys.beside());
        ScriptCall::new(&RENEW, keys, renewed).each(holds, |call, hold| {
            call.spelled(hold.id.permit()).millis(hold.lease).millis(hold.longest).number(hold.extended)
        })
    }
}

/// Ends the permit of an attempt. It is marked for `keep`.
fn end<'a>(keys: &'a Keys, site: Site<'a>, id: AttemptId, keep: Duration) -> ScriptCall<'a, Released> {
    release(keys, site, (id.permit(), id, keep), released)
}

/// Ends any permit, for a call with the id `caller`. The answer is remembered for `keep`.
pub(super) fn release_id<'a>(
    keys: &'a Keys,
    site: Site<'a>,
    id: &str,
    caller: AttemptId,
    keep: Duration,
) -> ScriptCall<'a, Timed<bool>> {
    release(keys, site, (id.to_owned(), caller, keep), forced)
}

fn release<'a, T>(
    keys: &'a Keys,
    site: Site<'a>,
    (permit, caller, keep): (String, AttemptId, Duration),
    read: fn(&mut Fields<'_>) -> Option<T>,
) -> ScriptCall<'a, T> {
    let call = marked(&RELEASE, keys, &permit, read).spelled(permit).id(caller).millis(keep);
    call.text(keys.channel()).text(site.how())
}

/// Sets how many permits there are.
pub(super) fn set<'a>(keys: &'a Keys, site: Site<'a>, copy: CallCopy, new: u32) -> ScriptCall<'a, Timed<()>> {
    let call = marked(&SET, keys, &copy.id.text(), was_set).number(new).copy(copy);
    call.text(keys.channel()).text(site.how())
}

fn was_set(fields: &mut Fields<'_>) -> Option<Timed<()>> {
    let answer = match fields.word()? {
        "SET" => Some(()),
        "STALE" => None,
        _ => return None,
    };
    Some((answer, fields.number()?))
}

/// `listed`: how many permits are wanted.
pub(super) fn inspect(keys: &Keys, listed: usize) -> ScriptCall<'_, TimedInspected> {
    ScriptCall::new(&INSPECT, keys.all().chain(keys.beside()), inspected).number(listed as u64)
}

pub(super) fn inspected(fields: &mut Fields<'_>) -> Option<TimedInspected> {
    let (now, available, acquired) = (fields.number()?, fields.number()?, fields.number()?);
    let mut permits = Vec::new();
    while !fields.at_end() {
        permits.push((fields.word()?.to_owned(), fields.ttl()?));
    }
    Some(TimedInspected { available, acquired, permits, now })
}

impl Scripts<'_> {
    pub(crate) async fn inspect_timed(self, keys: &Keys, listed: usize) -> Result<TimedInspected, Failure> {
        keys.check_slots(self.connection.topology())?;
        self.send(inspect(keys, listed)).await
    }

    pub(crate) async fn set_timed(self, keys: &Keys, copy: CallCopy, new: u32) -> Result<Timed<()>, Failure> {
        keys.check_slots(self.connection.topology())?;
        self.send(set(keys, self.site(keys), copy, new)).await
    }

    /// Ends any permit, for a call with the id `caller`.
    pub(crate) async fn release_timed(
        self,
        keys: &Keys,
        id: &str,
        (caller, keep): (AttemptId, Duration),
    ) -> Result<Timed<bool>, Failure> {
        keys.check_slots(self.connection.topology())?;
        self.send(release_id(keys, self.site(keys), id, caller, keep)).await
    }
}
