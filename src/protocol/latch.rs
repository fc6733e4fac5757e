//! The scripts of count-down latches as typed calls. Keys are latch, tickets and calls of one name.

use std::time::Duration;

use crate::connection::{Arg, Connection};
use crate::protocol::call::{Failure, TicketArgs, millis, run};
use crate::protocol::reply::latch::{
    CountedDown, LatchDeleted, LatchHeartbeatReply, LatchInspected, LatchSet, LatchWait, counted_down, latch_cancelled,
    latch_deleted, latch_heartbeat_reply, latch_inspected, latch_set, latch_wait,
};
use crate::protocol::reply::{Cancelled, ServerMillis};
use crate::protocol::{
    LATCH_CANCEL, LATCH_COUNT_DOWN, LATCH_DELETE, LATCH_HEARTBEAT, LATCH_INSPECT, LATCH_SET, LATCH_WAIT,
};

/// A connection, and the argument that is the same in every call a client makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LatchScripts<'a> {
    pub(crate) connection: &'a dyn Connection,
    pub(crate) inbox_prefix: &'a str,
}

/// One copy of a call that changes a latch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LatchCall<'a> {
    pub(crate) attempt_id: &'a str,
    /// This copy is refused later.
    pub(crate) not_after: ServerMillis,
    /// No copy of the call is executed later: the same for all of them, and not before any `not_after`.
    pub(crate) known_until: ServerMillis,
    /// Another copy may have been executed.
    pub(crate) resent: bool,
}

impl LatchScripts<'_> {
    pub(crate) async fn set(
        &self,
        keys: [&str; 3],
        call: LatchCall<'_>,
        count: u32,
        ttl: Duration,
    ) -> Result<LatchSet, Failure> {
        let [id, not_after, known_until, resent, inbox] = self.args(call);
        let args = [id, Arg::Number(count.into()), millis(ttl), not_after, known_until, resent, inbox];
        let reply = run(self.connection, &LATCH_SET, &keys, &args).await?;
        Ok(latch_set(&LATCH_SET, &reply)?)
    }

    pub(crate) async fn count_down(&self, keys: [&str; 3], call: LatchCall<'_>) -> Result<CountedDown, Failure> {
        let reply = run(self.connection, &LATCH_COUNT_DOWN, &keys, &self.args(call)).await?;
        Ok(counted_down(&LATCH_COUNT_DOWN, &reply)?)
    }

    pub(crate) async fn wait(
        &self,
        keys: [&str; 3],
        attempt_id: &str,
        ticket_ttl: Duration,
        not_after: ServerMillis,
    ) -> Result<LatchWait, Failure> {
        let args = [Arg::Text(attempt_id), millis(ticket_ttl), Arg::Number(not_after)];
        let reply = run(self.connection, &LATCH_WAIT, &keys, &args).await?;
        Ok(latch_wait(&LATCH_WAIT, &reply)?)
    }

    /// Attempt ids, each with the time its ticket lives without a heartbeat.
    pub(crate) async fn heartbeat(
        &self,
        keys: [&str; 3],
        waiters: &[TicketArgs<'_>],
    ) -> Result<LatchHeartbeatReply, Failure> {
        let tickets = waiters.iter().flat_map(|(id, ttl)| [Arg::Text(id), millis(*ttl)]);
        let args: Vec<Arg<'_>> = [Arg::Text(self.inbox_prefix)].into_iter().chain(tickets).collect();
        let reply = run(self.connection, &LATCH_HEARTBEAT, &keys, &args).await?;
        Ok(latch_heartbeat_reply(&LATCH_HEARTBEAT, &reply, waiters.len())?)
    }

    pub(crate) async fn cancel(&self, keys: [&str; 3], attempt_id: &str) -> Result<Cancelled, Failure> {
        let args = [Arg::Text(attempt_id), Arg::Text(self.inbox_prefix)];
        let reply = run(self.connection, &LATCH_CANCEL, &keys, &args).await?;
        Ok(latch_cancelled(&LATCH_CANCEL, &reply)?)
    }

    pub(crate) async fn delete(&self, keys: [&str; 3], call: LatchCall<'_>) -> Result<LatchDeleted, Failure> {
        let reply = run(self.connection, &LATCH_DELETE, &keys, &self.args(call)).await?;
        Ok(latch_deleted(&LATCH_DELETE, &reply)?)
    }

    pub(crate) async fn inspect(&self, keys: [&str; 3]) -> Result<LatchInspected, Failure> {
        let reply = run(self.connection, &LATCH_INSPECT, &keys, &[]).await?;
        Ok(latch_inspected(&LATCH_INSPECT, &reply)?)
    }

    /// What the scripts are told of a call that changes a latch.
    fn args<'a>(&'a self, call: LatchCall<'a>) -> [Arg<'a>; 5] {
        let LatchCall { attempt_id, not_after, known_until, resent } = call;
        let resent = Arg::Number(resent.into());
        [Arg::Text(attempt_id), Arg::Number(not_after), Arg::Number(known_until), resent, Arg::Text(self.inbox_prefix)]
    }
}
