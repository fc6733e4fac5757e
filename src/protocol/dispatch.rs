//! What is asked of the server about every resource: the kind of the keys decides which script does it.

use std::time::Duration;

use super::attempt_id::AttemptId;
use super::call::ScriptCall;
pub(crate) use super::call::Scripts;
pub(crate) use super::failure::Failure;
use super::key::Keys;
use super::kind::Kind;
pub(crate) use super::permits::ChangeArgs;
use super::reply::{Acquired, Cancelled, HeartbeatReply, Released, Renewed, Requeued};
use super::resource::Held;
pub(crate) use super::resource::{AcquireArgs, RenewArgs, TicketArgs};
use super::ticket::Ticket;

impl Kind {
    /// The name of the script that renews holds of the kind. Holds with an equal one are renewed in one call.
    pub(crate) fn renewal(self) -> Option<&'static str> {
        self.with(|resource| resource.held().map(|held| held.renewal().name()))
    }

    fn held<'a, T>(self, call: impl FnOnce(&dyn Held) -> ScriptCall<'a, T>) -> Result<ScriptCall<'a, T>, Failure> {
        self.with(|resource| resource.held().map(call)).ok_or(Failure::NeverHeld(self.word()))
    }
}

impl Scripts<'_> {
    pub(crate) async fn acquire(self, keys: &Keys, args: AcquireArgs) -> Result<Acquired, Failure> {
        self.send(keys.kind.with(|resource| resource.acquire(keys, self.site(), args))).await
    }

    pub(crate) async fn release(self, keys: &Keys, id: AttemptId) -> Result<Released, Failure> {
        self.send(keys.kind.held(|held| held.release(keys, self.site(), id))?).await
    }

    /// Releases, and queues up a ticket with its time to live, in one step.
    pub(crate) async fn requeue(self, keys: &Keys, id: AttemptId, next: TicketArgs) -> Result<Requeued, Failure> {
        self.send(keys.kind.held(|held| held.requeue(keys, self.site(), id, next))?).await
    }

    pub(crate) async fn cancel(self, keys: &Keys, ticket: Ticket, from_tail: bool) -> Result<Cancelled, Failure> {
        self.send(keys.kind.with(|resource| resource.cancel(keys, self.site(), ticket, from_tail))).await
    }

    pub(crate) async fn heartbeat(self, keys: &Keys, tickets: &[TicketArgs]) -> Result<HeartbeatReply, Failure> {
        self.send(keys.kind.with(|resource| resource.heartbeat(keys, self.site(), tickets))).await
    }

    /// Holds whose kinds have the same [`renewal`](Kind::renewal). An answer that takes longer than `within` is of no use.
    pub(crate) async fn renew(self, holds: &[RenewArgs<'_>], within: Duration) -> Result<Renewed, Failure> {
        let kind = holds.first().map_or(Kind::Lock, |(keys, ..)| keys.kind);
        if holds.len() < 2 || !self.connection.topology().one_name_per_call {
            return self.send_within(kind.held(|held| held.renew(holds))?, Some(within)).await;
        }
        let calls = holds.chunks(1).map(|hold| kind.held(|held| held.renew(hold)));
        let calls = calls.collect::<Result<Vec<_>, _>>()?;
        Renewed::joined(self.send_each(&calls, within).await)
    }

    /// As [`renew`](Self::renew), for holds that are renewed once `replicas` replicas have acknowledged it. A lease of zero would
    /// write nothing, and be acknowledged at once.
    pub(crate) async fn renew_acknowledged(
        self,
        holds: &[RenewArgs<'_>],
        replicas: u32,
        within: Duration,
    ) -> Result<Renewed, Failure> {
        let kind = holds.first().map_or(Kind::Lock, |(keys, ..)| keys.kind);
        let at_once = if self.connection.topology().one_name_per_call { 1 } else { holds.len().max(1) };
        let calls = holds.chunks(at_once).map(|holds| kind.held(|held| held.renew(holds)));
        let calls = calls.collect::<Result<Vec<_>, _>>()?;
        let answers = self.send_acknowledged(&calls, replicas, within).await.into_iter();
        Renewed::joined(answers.map(|answer| answer.map(|(renewed, by)| renewed.acknowledged(by, replicas))).collect())
    }
}
