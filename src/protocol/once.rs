//! Runs that happen once in a period: their scripts as typed calls. A run holds as a lock does: the scripts of the lock
//! renew, release, cancel and inspect its hold, and its queue stays empty. The counter also tells of the last run.

use std::time::Duration;

use super::attempt_id::AttemptId;
use super::call::{ScriptCall, Scripts, Site};
use super::failure::Failure;
use super::key::Keys;
use super::mutex::MUTEX;
use super::reply::{Acquired, Cancelled, Released, acquired, released};
use super::resource::{AcquireArgs, HeartbeatCall, Held, Resource, TicketArgs};
use super::script::scripts;
use super::ticket::Ticket;
use reply::{RunInspected, run_inspected};

pub(crate) mod reply;

scripts! { "once", "once": BEGIN = "begin", END = "end", INSPECT = "inspect" }

/// The runs of a name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Runs {
    /// When the one period begins in which a run may begin, in milliseconds since 1970, or 0.
    pub(super) first: u64,
    /// In milliseconds.
    pub(super) period: u64,
    /// Whether a run that has not ended well does not count.
    pub(super) retries: bool,
}

/// How a run ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunEnd {
    pub(crate) lease: Duration,
    pub(crate) period: Duration,
    pub(crate) is_done: bool,
    /// How long the hold lasts, from when the run began.
    pub(crate) least: Duration,
}

impl Resource for Runs {
    fn acquire<'a>(&self, keys: &'a Keys, _: Site<'a>, args: AcquireArgs) -> ScriptCall<'a, Acquired> {
        ScriptCall::new(&BEGIN, keys.all(), acquired)
            .id(args.ticket.id)
            .millis(args.ticket.lease)
            .number(self.period)
            .number(self.first)
            .number(self.retries)
            .number(args.not_after)
    }

    fn cancel<'a>(&self, keys: &'a Keys, site: Site<'a>, ticket: Ticket, from_tail: bool) -> ScriptCall<'a, Cancelled> {
        MUTEX.cancel(keys, site, ticket, from_tail)
    }

    fn heartbeat<'a>(&self, keys: &'a Keys, site: Site<'a>, tickets: &[TicketArgs]) -> Option<HeartbeatCall<'a>> {
        MUTEX.heartbeat(keys, site, tickets)
    }

    fn held(&self) -> Option<&dyn Held> {
        MUTEX.held()
    }
}

pub(super) fn end<'a>(keys: &'a Keys, id: AttemptId, end: RunEnd) -> ScriptCall<'a, Released> {
    let RunEnd { lease, period, is_done, least } = end;
    let outcome = if is_done { "done" } else { "failed" };
    let call = ScriptCall::new(&END, keys.all(), released).id(id).millis(lease).millis(period);
    call.text(outcome).millis(least)
}

pub(super) fn inspect(keys: &Keys) -> ScriptCall<'_, RunInspected> {
    ScriptCall::new(&INSPECT, keys.all(), run_inspected)
}

impl Scripts<'_> {
    pub(crate) async fn end_run(self, keys: &Keys, id: AttemptId, end: RunEnd) -> Result<Released, Failure> {
        self.send(self::end(keys, id, end)).await
    }

    pub(crate) async fn inspect_run(self, keys: &Keys) -> Result<RunInspected, Failure> {
        self.send(inspect(keys)).await
    }
}
