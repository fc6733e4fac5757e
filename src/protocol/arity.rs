//! Every typed call passes as many keys and arguments as its script's header says.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::stream::BoxStream;
use uuid::Uuid;

use super::Script;
use super::call::AcquireArgs;
use super::dispatch::Scripts;
use super::latch::{LatchCall, LatchScripts};
use super::lock::LockScripts;
use super::permit::{ChangeArgs, PermitScripts};
use crate::connection::{Call, Connection, ConnectionError, Notice, Reply, Topology};
use crate::protocol::key::{Kind, WRITE};
use crate::protocol::ticket::{AttemptId, ticket};

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
        Topology::single_server()
    }

    fn close(&self) {}
}

/// How many words a header's list has: those outside brackets, and those in the repeated group.
fn arity(script: &Script, field: &str) -> (usize, usize) {
    let prefix = format!("-- {field}:");
    let list = script.text().lines().find_map(|line| line.strip_prefix(&prefix)).unwrap();
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
    let keys = ["lock", "queue", "tickets", "fence"];
    let (lease, id) = (Duration::from_secs(1), AttemptId { client: Uuid::nil(), n: 1 });
    let (attempt_id, ticket) = (id.text(), ticket(Kind::Lock, id, lease, 1));
    let acquire = AcquireArgs {
        attempt_id: &attempt_id,
        wait: true,
        lease,
        amount: 1,
        ticket_ttl: lease,
        max_waiters: 0,
        not_after: 0,
    };
    let repeats = 3;
    assert!(scripts.acquire(keys, acquire).now_or_never().unwrap().is_err());
    assert!(scripts.release(keys, &attempt_id).now_or_never().unwrap().is_err());
    assert!(scripts.cancel(keys, &ticket, true).now_or_never().unwrap().is_err());
    assert!(scripts.heartbeat(keys, &vec![(&*ticket, lease); repeats]).now_or_never().unwrap().is_err());
    assert!(scripts.renew(&vec![("k", &*attempt_id, lease); repeats], lease).now_or_never().unwrap().is_err());
    assert!(scripts.force_release(keys, &attempt_id).now_or_never().unwrap().is_err());
    assert!(scripts.inspect(keys).now_or_never().unwrap().is_err());

    let scripts = PermitScripts { connection: &recorder, inbox_prefix: "p:inbox:" };
    let keys = ["permits", "leases", "queue", "tickets", "fence"];
    let change = ChangeArgs { old_id: &attempt_id, new_id: &attempt_id, units: 1, lease, limit: WRITE, not_after: 0 };
    assert!(scripts.acquire(keys, acquire, WRITE).now_or_never().unwrap().is_err());
    assert!(scripts.release(keys, &attempt_id, WRITE).now_or_never().unwrap().is_err());
    assert!(scripts.cancel(keys, &ticket, true, WRITE).now_or_never().unwrap().is_err());
    assert!(scripts.heartbeat(keys, &vec![(&*ticket, lease); repeats], WRITE).now_or_never().unwrap().is_err());
    assert!(scripts.renew(&vec![(["k", "l"], &*attempt_id, lease); repeats], lease).now_or_never().unwrap().is_err());
    assert!(scripts.change(keys, change).now_or_never().unwrap().is_err());
    assert!(scripts.set_limit(keys, WRITE, 0).now_or_never().unwrap().is_err());
    assert!(scripts.inspect(keys, WRITE).now_or_never().unwrap().is_err());

    let scripts = LatchScripts { connection: &recorder, inbox_prefix: "p:inbox:" };
    let keys = ["latch", "tickets", "calls"];
    let call = LatchCall { attempt_id: &attempt_id, not_after: 0, known_until: 0, resent: false };
    assert!(scripts.set(keys, call, 3, lease).now_or_never().unwrap().is_err());
    assert!(scripts.count_down(keys, call).now_or_never().unwrap().is_err());
    assert!(scripts.wait(keys, &attempt_id, lease, 0).now_or_never().unwrap().is_err());
    assert!(scripts.heartbeat(keys, &vec![(&*attempt_id, lease); repeats]).now_or_never().unwrap().is_err());
    assert!(scripts.cancel(keys, &attempt_id).now_or_never().unwrap().is_err());
    assert!(scripts.delete(keys, call).now_or_never().unwrap().is_err());
    assert!(scripts.inspect(keys).now_or_never().unwrap().is_err());

    let scripts = Scripts { connection: &recorder, inbox_prefix: "p:inbox:" };
    assert!(scripts.listeners("scratch", "p:inbox:c").now_or_never().unwrap().is_err());

    let calls = recorder.0.lock().unwrap();
    assert_eq!(calls.len(), Script::all().count(), "every script has its call");
    for (script, keys, args) in calls.iter() {
        for (field, passed) in [("KEYS", *keys), ("ARGV", *args)] {
            let (fixed, repeated) = arity(script, field);
            assert_eq!(passed, fixed + repeated * repeats, "{} {field}", script.name());
        }
    }
}
