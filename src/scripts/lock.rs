//! The lock's scripts as typed calls: who passes which key and argument in which place is decided here only.

use std::time::Duration;

use crate::connection::{Arg, Call, Connection, ConnectionError, Reply};
use crate::key::Keys;
use crate::scripts::calls::{AcquireArgs, Failure, RenewArgs, TouchArgs, millis};
use crate::scripts::reply::{self, Acquired, Cancelled, ForceReleased, Inspected, Released, Renewed, Touched};
use crate::scripts::{
    LOCK_ACQUIRE, LOCK_CANCEL, LOCK_FORCE_RELEASE, LOCK_INSPECT, LOCK_RELEASE, LOCK_RENEW, LOCK_TOUCH, Script,
};

/// A connection, and the arguments that are the same in every call a client makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LockScripts<'a> {
    pub(crate) connection: &'a dyn Connection,
    pub(crate) inbox_prefix: &'a str,
}

impl LockScripts<'_> {
    pub(crate) async fn acquire(&self, keys: &Keys, args: AcquireArgs<'_>) -> Result<Acquired, Failure> {
        let args = [
            Arg::Text(args.wire_id),
            Arg::Text(if args.wait { "wait" } else { "try" }),
            millis(args.lease),
            Arg::Number(args.amount.into()),
            millis(args.ticket_ttl),
            Arg::Number(args.max_waiters.into()),
            Arg::Number(args.not_after),
            Arg::Text(self.inbox_prefix),
            self.counts_everyone(),
        ];
        let reply = self.run(&LOCK_ACQUIRE, &keys.lock(), &args).await?;
        Ok(reply::acquired(&LOCK_ACQUIRE, &reply)?)
    }

    pub(crate) async fn release(&self, keys: &Keys, wire_id: &str) -> Result<Released, Failure> {
        let no_ticket = (Arg::Text(""), Arg::Number(0));
        let args = [Arg::Text(wire_id), Arg::Text(self.inbox_prefix), self.counts_everyone(), no_ticket.0, no_ticket.1];
        let reply = self.run(&LOCK_RELEASE, &keys.lock(), &args).await?;
        Ok(reply::released(&LOCK_RELEASE, &reply)?)
    }

    pub(crate) async fn cancel(&self, keys: &Keys, ticket: &str, from_tail: bool) -> Result<Cancelled, Failure> {
        let from = Arg::Text(if from_tail { "-1" } else { "1" });
        let args = [Arg::Text(ticket), from, Arg::Text(self.inbox_prefix), self.counts_everyone()];
        let reply = self.run(&LOCK_CANCEL, &keys.lock(), &args).await?;
        Ok(reply::cancelled(&LOCK_CANCEL, &reply)?)
    }

    pub(crate) async fn touch(&self, keys: &Keys, tickets: &[TouchArgs<'_>]) -> Result<Touched, Failure> {
        let mut args = vec![Arg::Text(self.inbox_prefix), self.counts_everyone()];
        args.extend(tickets.iter().flat_map(|(ticket, ttl)| [Arg::Text(ticket), millis(*ttl)]));
        let reply = self.run(&LOCK_TOUCH, &keys.lock(), &args).await?;
        Ok(reply::touched(&LOCK_TOUCH, &reply, tickets.len())?)
    }

    pub(crate) async fn renew(&self, holds: &[RenewArgs<'_>]) -> Result<Renewed, Failure> {
        let keys: Vec<&str> = holds.iter().map(|(keys, ..)| &*keys.main).collect();
        let args: Vec<Arg<'_>> =
            holds.iter().flat_map(|(_, wire_id, lease)| [Arg::Text(wire_id), millis(*lease)]).collect();
        let reply = self.run(&LOCK_RENEW, &keys, &args).await?;
        Ok(reply::renewed(&LOCK_RENEW, &reply, holds.len())?)
    }

    pub(crate) async fn force_release(&self, keys: &Keys, wire_id: &str) -> Result<ForceReleased, Failure> {
        let args = [Arg::Text(wire_id), Arg::Text(self.inbox_prefix), self.counts_everyone()];
        let reply = self.run(&LOCK_FORCE_RELEASE, &keys.lock(), &args).await?;
        Ok(reply::force_released(&LOCK_FORCE_RELEASE, &reply)?)
    }

    pub(crate) async fn inspect(&self, keys: &Keys) -> Result<Inspected, Failure> {
        let reply = self.run(&LOCK_INSPECT, &keys.lock(), &[]).await?;
        Ok(reply::inspected(&LOCK_INSPECT, &reply)?)
    }

    async fn run(&self, script: &'static Script, keys: &[&str], args: &[Arg<'_>]) -> Result<Reply, ConnectionError> {
        self.connection.run(Call { script, keys, args }).await
    }

    fn counts_everyone(&self) -> Arg<'static> {
        Arg::Number(self.connection.topology().publish_counts_everyone.into())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use futures::FutureExt;
    use futures::stream::BoxStream;
    use uuid::Uuid;

    use super::*;
    use crate::connection::{Notice, Topology};
    use crate::key::Kind;
    use crate::ticket::{WireId, ticket};

    /// What each call passed: the script, and how many keys and arguments.
    #[derive(Debug, Default)]
    struct Recorder(Mutex<Vec<(&'static Script, usize, usize)>>);

    #[async_trait]
    impl Connection for Recorder {
        async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
            self.0.lock().unwrap().push((call.script, call.keys.len(), call.args.len()));
            Ok(Reply::Nil)
        }

        async fn run_batch(&self, _: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
            Vec::new()
        }

        async fn subscribe(&self, _: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
            Err(ConnectionError::Closed)
        }

        fn topology(&self) -> Topology {
            Topology { publish_counts_everyone: true }
        }

        fn close(&self) {}
    }

    /// How many words a header's list has: those outside brackets, and those in the repeated group.
    fn arity(script: &Script, field: &str) -> (usize, usize) {
        let prefix = format!("-- {field}:");
        let list = script.source().lines().find_map(|line| line.strip_prefix(&prefix)).unwrap();
        let (fixed, repeated) = match list.split_once('[') {
            Some((fixed, group)) => (fixed, group.split(']').next().unwrap()),
            None if list.contains("...") => ("", list),
            None => (list, ""),
        };
        (fixed.split_whitespace().count(), repeated.split_whitespace().count())
    }

    #[test]
    fn every_call_passes_what_the_header_says() {
        let recorder = Recorder::default();
        let scripts = LockScripts { connection: &recorder, inbox_prefix: "p:inbox:" };
        let keys = Keys::new("p", Kind::Lock, "n").unwrap();
        let (lease, id) = (Duration::from_secs(1), WireId { client: Uuid::nil(), n: 1 });
        let (wire_id, ticket) = (id.text(), ticket(id, lease, 1));
        let acquire = AcquireArgs {
            wire_id: &wire_id,
            wait: true,
            lease,
            amount: 1,
            ticket_ttl: lease,
            max_waiters: 0,
            not_after: 0,
        };
        let repeats = 3;
        assert!(scripts.acquire(&keys, acquire).now_or_never().unwrap().is_err());
        assert!(scripts.release(&keys, &wire_id).now_or_never().unwrap().is_err());
        assert!(scripts.cancel(&keys, &ticket, true).now_or_never().unwrap().is_err());
        assert!(scripts.touch(&keys, &vec![(&*ticket, lease); repeats]).now_or_never().unwrap().is_err());
        assert!(scripts.renew(&vec![(&keys, &*wire_id, lease); repeats]).now_or_never().unwrap().is_err());
        assert!(scripts.force_release(&keys, &wire_id).now_or_never().unwrap().is_err());
        assert!(scripts.inspect(&keys).now_or_never().unwrap().is_err());

        let calls = recorder.0.lock().unwrap();
        assert_eq!(calls.len(), Script::all().count(), "every script has its call");
        for (script, keys, args) in calls.iter() {
            for (field, passed) in [("KEYS", *keys), ("ARGV", *args)] {
                let (fixed, repeated) = arity(script, field);
                assert_eq!(passed, fixed + repeated * repeats, "{} {field}", script.name());
            }
        }
    }
}
