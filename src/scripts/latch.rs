//! The scripts of count-down latches as typed calls. Keys are latch and tickets of one name.

use std::time::Duration;

use crate::connection::{Arg, Connection};
use crate::scripts::call::{Failure, TouchArgs, millis, run};
use crate::scripts::reply::ServerMillis;
use crate::scripts::reply::latch::{
    CountedDown, LatchDeleted, LatchInspected, LatchSet, LatchTouched, LatchWait, counted_down, latch_cancelled,
    latch_deleted, latch_inspected, latch_set, latch_touched, latch_wait,
};
use crate::scripts::{LATCH_CANCEL, LATCH_COUNT_DOWN, LATCH_DELETE, LATCH_INSPECT, LATCH_SET, LATCH_TOUCH, LATCH_WAIT};

/// A connection, and the argument that is the same in every call a client makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LatchScripts<'a> {
    pub(crate) connection: &'a dyn Connection,
    pub(crate) inbox_prefix: &'a str,
}

impl LatchScripts<'_> {
    pub(crate) async fn set(
        &self,
        keys: [&str; 2],
        wire_id: &str,
        count: u32,
        ttl: Duration,
        not_after: ServerMillis,
    ) -> Result<LatchSet, Failure> {
        let args = [Arg::Text(wire_id), Arg::Number(count.into()), millis(ttl), Arg::Number(not_after)];
        let reply = run(self.connection, &LATCH_SET, &keys, &args).await?;
        Ok(latch_set(&LATCH_SET, &reply)?)
    }

    pub(crate) async fn count_down(
        &self,
        keys: [&str; 2],
        wire_id: &str,
        not_after: ServerMillis,
    ) -> Result<CountedDown, Failure> {
        let args = [Arg::Text(wire_id), Arg::Number(not_after), Arg::Text(self.inbox_prefix)];
        let reply = run(self.connection, &LATCH_COUNT_DOWN, &keys, &args).await?;
        Ok(counted_down(&LATCH_COUNT_DOWN, &reply)?)
    }

    pub(crate) async fn wait(
        &self,
        keys: [&str; 2],
        wire_id: &str,
        ticket_ttl: Duration,
        not_after: ServerMillis,
    ) -> Result<LatchWait, Failure> {
        let args = [Arg::Text(wire_id), millis(ticket_ttl), Arg::Number(not_after)];
        let reply = run(self.connection, &LATCH_WAIT, &keys, &args).await?;
        Ok(latch_wait(&LATCH_WAIT, &reply)?)
    }

    /// Wire ids, each with the time its ticket lives without a touch.
    pub(crate) async fn touch(&self, keys: [&str; 2], waiters: &[TouchArgs<'_>]) -> Result<LatchTouched, Failure> {
        let args: Vec<Arg<'_>> = waiters.iter().flat_map(|(id, ttl)| [Arg::Text(id), millis(*ttl)]).collect();
        let reply = run(self.connection, &LATCH_TOUCH, &keys, &args).await?;
        Ok(latch_touched(&LATCH_TOUCH, &reply, waiters.len())?)
    }

    pub(crate) async fn cancel(&self, keys: [&str; 2], wire_id: &str) -> Result<ServerMillis, Failure> {
        let reply = run(self.connection, &LATCH_CANCEL, &keys, &[Arg::Text(wire_id)]).await?;
        Ok(latch_cancelled(&LATCH_CANCEL, &reply)?)
    }

    pub(crate) async fn delete(
        &self,
        keys: [&str; 2],
        wire_id: &str,
        not_after: ServerMillis,
    ) -> Result<LatchDeleted, Failure> {
        let args = [Arg::Text(wire_id), Arg::Number(not_after), Arg::Text(self.inbox_prefix)];
        let reply = run(self.connection, &LATCH_DELETE, &keys, &args).await?;
        Ok(latch_deleted(&LATCH_DELETE, &reply)?)
    }

    pub(crate) async fn inspect(&self, keys: [&str; 2]) -> Result<LatchInspected, Failure> {
        let reply = run(self.connection, &LATCH_INSPECT, &keys, &[]).await?;
        Ok(latch_inspected(&LATCH_INSPECT, &reply)?)
    }
}
