//! The requests that exist for every resource, whatever its kind.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::attempt_id::AttemptId;
use super::call::{ScriptCall, Site};
use super::drop_waiters::{DropArgs, Dropped};
use super::facts::Form;
use super::key::Keys;
use super::renewed::{self, Renewed};
use super::reply::{Acquired, AskedAhead, Cancelled, HeartbeatReply, Released, Requeued, ServerMillis, Timed};
use super::script::Script;
use super::ticket::Ticket;
use super::token::Token;

/// The arguments of an acquisition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AcquireArgs {
    pub(crate) ticket: Ticket,
    pub(crate) ticket_ttl: Duration,
    /// Whether to queue up if the request cannot be granted at once.
    pub(crate) wait: bool,
    /// The most waiters. 0 is no limit.
    pub(crate) max_waiters: u32,
    pub(crate) not_after: ServerMillis,
    /// Whether to try the right to publish, for a lock without a queue.
    pub(crate) tries_channel: bool,
}

/// The arguments of a request for the next hand-off budget, which a cohort sends while it holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AheadArgs<'a> {
    pub(crate) held: AttemptId,
    /// The token of the hold in the server, which is the first one of the present budget.
    pub(crate) known: Token,
    pub(crate) lease: Duration,
    /// How many guards the budget is to serve.
    pub(crate) budget: u32,
    pub(crate) place: Place<'a>,
    pub(crate) not_after: ServerMillis,
}

/// The place of a cohort in the queue while it holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'a> {
    /// It has none. This ticket queues up if others wait.
    Next(Ticket),
    /// It has these tickets in the queue, because there may be room for another hold. Nothing queues up.
    Has(&'a [Ticket]),
}

/// A ticket with its time to live.
pub(crate) type TicketArgs = (Ticket, Duration);

/// A hold to renew.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RenewArgs<'a> {
    pub(crate) keys: &'a Keys,
    pub(crate) id: AttemptId,
    /// With a lease of zero, the server only checks that the hold exists.
    pub(crate) lease: Duration,
    /// The longest lease that any call about the hold has asked for, this one included. A hold that lasts longer is
    /// shortened to this, unless the server has executed a call with a larger one that was `extended`: then this is a
    /// late copy. Zero is no limit.
    pub(crate) longest: Duration,
    /// Whether an earlier call may have had a smaller `longest`, so that the server has to store this one.
    pub(crate) extended: bool,
    /// Whether the hold is known to be stored [in full](Form::InFull).
    pub(crate) in_full: &'a AtomicBool,
}

/// A request that keeps tickets alive.
pub(crate) type HeartbeatCall<'a> = ScriptCall<'a, HeartbeatReply>;

/// A kind of resource: the scripts that serve it, and the order of their arguments.
pub(crate) trait Resource {
    fn acquire<'a>(&self, keys: &'a Keys, site: Site<'a>, args: AcquireArgs) -> ScriptCall<'a, Acquired>;

    /// Ends an acquisition in any state: queued or granted. If the ticket has a [rest](Ticket::rest), the hold goes on
    /// with that.
    fn cancel<'a>(&self, keys: &'a Keys, site: Site<'a>, ticket: Ticket, from_tail: bool) -> ScriptCall<'a, Cancelled>;

    /// `None`: nobody stands in a queue.
    fn heartbeat<'a>(&self, keys: &'a Keys, site: Site<'a>, tickets: &[TicketArgs]) -> Option<HeartbeatCall<'a>>;

    /// The calls about holds. `None` if the resource is never held.
    fn held(&self) -> Option<&dyn Held>;
}

/// A resource that can be held for a lease.
pub(crate) trait Held {
    /// `resent`: a copy of the request that was granted may still be executed.
    fn release<'a>(&self, keys: &'a Keys, site: Site<'a>, id: AttemptId, resent: bool) -> ScriptCall<'a, Released>;

    /// Releases the hold and queues up a ticket, in one step. Without a queue, only releases.
    fn requeue<'a>(&self, keys: &'a Keys, site: Site<'a>, id: AttemptId, next: TicketArgs) -> ScriptCall<'a, Requeued>;

    /// Asks for the next hand-off budget of a hold that continues. `None`: there is no such script.
    fn ask_ahead<'a>(&self, keys: &'a Keys, args: AheadArgs<'_>) -> Option<ScriptCall<'a, AskedAhead>>;

    /// Removes tickets from a part of the queue, and tells their clients. `None`: there is no queue.
    fn drop_waiters<'a>(
        &self,
        keys: &'a Keys,
        site: Site<'a>,
        args: DropArgs,
    ) -> Option<ScriptCall<'a, Timed<Dropped>>>;

    /// The script that renews leases.
    fn renewal(&self) -> &'static Script;

    /// The one that renews leases of holds that are stored short. `None`: no hold is.
    fn renewal_short(&self) -> Option<&'static Script> {
        None
    }

    /// Holds with the same script are renewed in one call.
    fn renew<'a>(&self, holds: &[RenewArgs<'a>], form: Form) -> ScriptCall<'a, Renewed> {
        let keys = holds.iter().flat_map(|hold| hold.keys.renewed(form));
        let call = match self.renewal_short().filter(|_| form == Form::Short) {
            Some(short) => ScriptCall::new(short, keys, renewed::renewed_short),
            None => ScriptCall::new(self.renewal(), keys, renewed::renewed),
        };
        call.each(holds, |call, hold| call.id(hold.id).millis(hold.lease).millis(hold.longest).number(hold.extended))
    }
}
