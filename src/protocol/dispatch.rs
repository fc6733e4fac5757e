//! The calls that exist for every resource. The kind of the keys decides which script runs.

use std::time::Duration;

use uuid::Uuid;

use super::attempt_id::AttemptId;
use super::call::ScriptCall;
pub(crate) use super::call::Scripts;
pub(crate) use super::change::{ChangeArgs, Changed};
pub(crate) use super::drop_waiters::{DropArgs, Dropped};
pub(crate) use super::failure::Failure;
use super::key::Keys;
use super::kind::Kind;
use super::mutex;
use super::reply::{Acquired, AskedAhead, Cancelled, HeartbeatReply, Released, Requeued, ServerMillis, Timed};
use super::resource::Held;
pub(crate) use super::resource::{AcquireArgs, AheadArgs, Place, RenewArgs, TicketArgs};
use super::ticket::{Claim, Ticket};

impl Kind {
    pub(super) fn held<'a, T>(
        self,
        call: impl FnOnce(&dyn Held) -> ScriptCall<'a, T>,
    ) -> Result<ScriptCall<'a, T>, Failure> {
        self.held_if(|held| Some(call(held)))
    }

    fn held_if<'a, T>(
        self,
        call: impl FnOnce(&dyn Held) -> Option<ScriptCall<'a, T>>,
    ) -> Result<ScriptCall<'a, T>, Failure> {
        self.with(|resource| resource.held().and_then(call)).ok_or(Failure::NoSuchRequest(self.word()))
    }
}

impl Scripts<'_> {
    pub(crate) async fn acquire(self, keys: &Keys, args: AcquireArgs) -> Result<Acquired, Failure> {
        keys.check_slots(self.connection.topology())?;
        self.send(keys.kind.with(|resource| resource.acquire(keys, self.site(keys), args))).await
    }

    /// Like [`acquire`](Self::acquire). Returns the number of replicas that have acknowledged the call, too.
    pub(crate) async fn acquire_acknowledged(
        self,
        keys: &Keys,
        args: AcquireArgs,
        replicas: u32,
        within: Duration,
    ) -> Result<(Acquired, u32), Failure> {
        keys.check_slots(self.connection.topology())?;
        let call = keys.kind.with(|resource| resource.acquire(keys, self.site(keys), args));
        self.send_one_acknowledged(call, replicas, within).await
    }

    /// `resent`: a copy of the request that was granted may still be executed.
    pub(crate) async fn release(self, keys: &Keys, id: AttemptId, resent: bool) -> Result<Released, Failure> {
        self.send(keys.kind.held(|held| held.release(keys, self.site(keys), id, resent))?).await
    }

    /// Releases the hold and queues up a ticket with its time to live, in one step.
    pub(crate) async fn requeue(self, keys: &Keys, id: AttemptId, next: TicketArgs) -> Result<Requeued, Failure> {
        self.send(keys.kind.held(|held| held.requeue(keys, self.site(keys), id, next))?).await
    }

    /// Asks for the next hand-off budget of a hold that continues.
    pub(crate) async fn ask_ahead(self, keys: &Keys, args: AheadArgs<'_>) -> Result<AskedAhead, Failure> {
        self.send(keys.kind.held_if(|held| held.ask_ahead(keys, args))?).await
    }

    pub(crate) async fn drop_waiters(self, keys: &Keys, args: DropArgs) -> Result<Timed<Dropped>, Failure> {
        self.send(keys.kind.held_if(|held| held.drop_waiters(keys, self.site(keys), args))?).await
    }

    pub(crate) async fn cancel(self, keys: &Keys, ticket: Ticket, from_tail: bool) -> Result<Cancelled, Failure> {
        let call = keys.kind.with(|resource| resource.cancel(keys, self.site(keys), ticket, from_tail));
        self.send_quietly(call).await
    }

    /// Ends one part of a hold, see [`Ticket::rest`].
    pub(crate) async fn give_back(self, keys: &Keys, ticket: Ticket) -> Result<Cancelled, Failure> {
        self.send(keys.kind.with(|resource| resource.cancel(keys, self.site(keys), ticket, false))).await
    }

    /// Like [`cancel`](Self::cancel), over the connection for calls that wait for `replicas` replicas, and after the
    /// calls sent before.
    pub(crate) async fn cancel_acknowledged(
        self,
        keys: &Keys,
        ticket: Ticket,
        from_tail: bool,
        replicas: u32,
        within: Duration,
    ) -> Result<Cancelled, Failure> {
        let call = keys.kind.with(|resource| resource.cancel(keys, self.site(keys), ticket, from_tail));
        self.send_one_acknowledged_quietly(&call, replicas, within).await.map(|(cancelled, _)| cancelled)
    }

    pub(crate) async fn heartbeat(self, keys: &Keys, tickets: &[TicketArgs]) -> Result<HeartbeatReply, Failure> {
        let call = keys.kind.with(|resource| resource.heartbeat(keys, self.site(keys), tickets));
        self.send(call.ok_or(Failure::NoSuchRequest(keys.kind.word()))?).await
    }

    /// Gives the hold `old` to the attempt of the ticket, whose units are those of the hold.
    pub(crate) async fn resume(
        self,
        keys: &Keys,
        old: AttemptId,
        (ticket, not_after): (Ticket, ServerMillis),
    ) -> Result<Changed, Failure> {
        let Ticket { id: new, lease, claim, .. } = ticket;
        match claim {
            Claim::Units { units, limit } => {
                self.change(keys, limit, ChangeArgs { old, rest: None, new, units, lease, not_after, token: None })
                    .await
            }
            Claim::Tokens(_) => self.send(mutex::resume(keys, old, (ticket, not_after))).await,
            Claim::Nothing => Err(Failure::NoSuchRequest(keys.kind.word())),
        }
    }

    /// The attempts that hold the resource, or the first thousand of them. Of permits in the format of Redisson, only
    /// those of `client` can be told from others.
    pub(crate) async fn holders(self, keys: &Keys, client: Uuid) -> Result<Vec<AttemptId>, Failure> {
        let seen = self.seen(keys, 0).await?;
        let attempt = |id: &str| AttemptId::parse(id).or_else(|| AttemptId::of_permit(id, client));
        Ok(seen.holds.iter().filter_map(|hold| attempt(&hold.id)).collect())
    }
}
