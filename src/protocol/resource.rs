//! What is asked of the server about every resource, whatever its kind.

use std::time::Duration;

use futures::future::BoxFuture;
use uuid::Uuid;

use super::attempt_id::AttemptId;
use super::call::{ScriptCall, Scripts, Site};
use super::failure::Failure;
use super::key::Keys;
use super::reply::{self, Acquired, Cancelled, HeartbeatReply, Released, Renewed, Requeued, ServerMillis};
use super::script::Script;
use super::ticket::Ticket;

/// What an acquisition asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AcquireArgs {
    pub(crate) ticket: Ticket,
    pub(crate) ticket_ttl: Duration,
    /// Whether to queue up if others are in the way.
    pub(crate) wait: bool,
    /// 0 is no limit.
    pub(crate) max_waiters: u32,
    pub(crate) not_after: ServerMillis,
}

/// A ticket with its time to live.
pub(crate) type TicketArgs = (Ticket, Duration);

/// A hold to renew. A lease of zero looks without renewing.
pub(crate) type RenewArgs<'a> = (&'a Keys, AttemptId, Duration);

/// One kind of resource: which scripts serve it, and which arguments they get in which order.
pub(crate) trait Resource {
    fn acquire<'a>(&self, keys: &'a Keys, site: Site<'a>, args: AcquireArgs) -> ScriptCall<'a, Acquired>;

    /// Ends an acquisition wherever it stands: queued or granted.
    fn cancel<'a>(&self, keys: &'a Keys, site: Site<'a>, ticket: Ticket, from_tail: bool) -> ScriptCall<'a, Cancelled>;

    fn heartbeat<'a>(&self, keys: &'a Keys, site: Site<'a>, tickets: &[TicketArgs]) -> ScriptCall<'a, HeartbeatReply>;

    /// The calls about holds, unless it is never held.
    fn held(&self) -> Option<&dyn Held>;

    /// Tries every right that a client needs: runs every branch of the scripts that issues a command of its own.
    fn rehearse<'a>(&self, rehearsal: Rehearsal<'a>) -> BoxFuture<'a, Result<ServerMillis, Failure>>;

    /// Takes back what a refused rehearsal left, as far as the rights go.
    fn tidy<'a>(&self, rehearsal: Rehearsal<'a>) -> BoxFuture<'a, ()>;
}

/// A resource that can be held for a lease.
pub(crate) trait Held {
    fn release<'a>(&self, keys: &'a Keys, site: Site<'a>, id: AttemptId) -> ScriptCall<'a, Released>;

    /// Releases, and queues up a ticket in the same step.
    fn requeue<'a>(&self, keys: &'a Keys, site: Site<'a>, id: AttemptId, next: TicketArgs) -> ScriptCall<'a, Requeued>;

    /// The script that renews leases. Holds of every resource that has the same one are renewed in one call.
    fn renewal(&self) -> &'static Script;

    fn renew<'a>(&self, holds: &[RenewArgs<'a>]) -> ScriptCall<'a, Renewed> {
        let keys = holds.iter().flat_map(|(keys, ..)| keys.renewed());
        ScriptCall::new(self.renewal(), keys, reply::renewed)
            .each(holds, |call, (_, id, lease)| call.id(*id).millis(*lease))
    }
}

/// What a client tries its rights on when it connects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rehearsal<'a> {
    pub(crate) scripts: Scripts<'a>,
    pub(crate) keys: &'a Keys,
    pub(crate) client: Uuid,
    pub(crate) command_timeout: Duration,
}
