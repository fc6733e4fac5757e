//! What the checks of a connection share: connections to the server, and calls with names of their own.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use futures::future::BoxFuture;
use uuid::Uuid;

use crate::connection::{Arg, Call, Connection, ConnectionError, Reply};
use crate::mutex::lock;
use crate::protocol::Script;
use crate::runtime::Executor;
use crate::testing::disturb::Disturb;
use crate::testing::report::{Failing, failed, not_checked};
use crate::testing::scripts::{self, Scripts};

pub(in crate::testing) type Connect<'a> =
    Box<dyn Fn() -> BoxFuture<'a, Result<Box<dyn Connection>, String>> + Send + Sync + 'a>;

pub(super) type Answer = Result<Reply, ConnectionError>;

/// Between two looks at something that others change.
const PAUSE: Duration = Duration::from_millis(5);

/// What a subscription delivered from an interruption to its next message.
#[derive(Clone)]
pub(super) struct Interruption {
    /// The gaps before the message.
    pub(super) gaps: usize,
    /// Whether one gap came before the message and one behind.
    pub(super) gap_behind: bool,
    /// Whether a message came. If not, `after` says why.
    pub(super) is_restored: bool,
    pub(super) after: String,
}

pub(in crate::testing) struct Lab<'a> {
    pub(super) executor: Arc<dyn Executor>,
    connect: Connect<'a>,
    pub(super) disturb: Option<&'a dyn Disturb>,
    pub(super) command_timeout: Duration,
    /// The longest wait of one check.
    pub(super) limit: Duration,
    pub(super) scripts: Scripts,
    /// What became of a subscription that was interrupted. Several checks look at the same interruption.
    pub(super) interruption: Mutex<Option<Interruption>>,
    run: String,
    names: AtomicU64,
    /// What the check waits for.
    waits_for: Mutex<Option<String>>,
}

impl<'a> Lab<'a> {
    #[expect(clippy::disallowed_methods, reason = "several checks may run on one server")]
    pub(super) fn new(executor: Arc<dyn Executor>, connect: Connect<'a>, command_timeout: Duration) -> Self {
        let run = Uuid::new_v4().simple().to_string();
        let (scripts, names) = (Scripts::of(&run), AtomicU64::new(0));
        Self {
            executor,
            connect,
            disturb: None,
            command_timeout,
            limit: Duration::from_secs(30),
            scripts,
            interruption: Mutex::default(),
            run,
            names,
            waits_for: Mutex::default(),
        }
    }

    fn name(&self) -> u64 {
        self.names.fetch_add(1, Ordering::Relaxed)
    }

    /// A new key. All of them are in one slot of a cluster.
    pub(super) fn key(&self) -> String {
        format!("bowline:testing:{{{}}}:{}", self.run, self.name())
    }

    /// A new channel without a slot.
    pub(super) fn channel(&self) -> String {
        format!("bowline:inbox:testing:{}:{}", self.run, self.name())
    }

    /// A new channel in the slot of the keys.
    pub(super) fn shard_channel(&self) -> String {
        format!("bowline:inbox:testing:{{{}}}:{}", self.run, self.name())
    }

    /// A script that the server has never seen. It counts like [`count`](Self::count).
    pub(super) fn new_script(&self) -> &'static Script {
        scripts::counting(&format!("{} {}", self.run, self.name()))
    }

    pub(super) async fn connect(&self) -> Result<Box<dyn Connection>, Failing> {
        (self.connect)().await.map_err(|error| not_checked(format!("connecting failed: {error}")))
    }

    /// The error of `connect`.
    pub(super) async fn try_connect(&self) -> Result<Box<dyn Connection>, String> {
        (self.connect)().await
    }

    pub(super) fn disturb(&self) -> Result<&'a dyn Disturb, Failing> {
        self.disturb.ok_or_else(|| not_checked("nothing was given that disturbs the connection"))
    }

    /// Executes the script that counts.
    pub(super) async fn count(&self, connection: &dyn Connection, key: &str) -> Answer {
        self.count_by(self.scripts.count, connection, key).await
    }

    pub(super) async fn count_by(&self, script: &'static Script, connection: &dyn Connection, key: &str) -> Answer {
        connection.run(Call::new(script, &[key], &[Arg::Text("x")])).await
    }

    /// How often the script that counts was executed with this key.
    pub(super) async fn executed(&self, connection: &dyn Connection, key: &str) -> Result<i64, Failing> {
        match connection.run(Call::new(self.scripts.executed, &[key], &[])).await {
            Ok(Reply::Integer(executed)) => Ok(executed),
            other => {
                Err(not_checked(format!("another connection was asked how often the call was executed: {other:?}")))
            }
        }
    }

    /// The reply of `echo` is a list with this text in it.
    pub(super) async fn echo(&self, connection: &dyn Connection, text: &str) -> Answer {
        let key = self.key();
        match connection.run(Call::new(self.scripts.echo, &[&key], &[Arg::Text("list"), Arg::Text(text)])).await {
            Ok(Reply::Array(items)) => Ok(items.into_iter().nth(1).unwrap_or(Reply::Nil)),
            other => other,
        }
    }

    /// Publishes a message by a call, and returns the number of subscribers that the server told.
    pub(super) async fn publish(
        &self,
        connection: &dyn Connection,
        channel: &str,
        message: &str,
    ) -> Result<i64, Failing> {
        let command = if channel.contains('{') { "SPUBLISH" } else { "PUBLISH" };
        let args = [Arg::Text(channel), Arg::Text(message), Arg::Text(command)];
        match connection.run(Call::new(self.scripts.publish, &[&self.key()], &args)).await {
            Ok(Reply::Integer(told)) => Ok(told),
            other => Err(not_checked(format!("a message could not be published: {other:?}"))),
        }
    }

    /// For the report, should the wait not end.
    pub(super) fn waits_for(&self, what: impl Into<String>) {
        *lock(&self.waits_for) = Some(what.into());
    }

    pub(super) fn out_of_time(&self) -> Failing {
        let (limit, what) = (self.limit, lock(&self.waits_for).take());
        failed(format!("not within {limit:?}: {}", what.as_deref().unwrap_or("an answer")))
    }

    pub(super) fn pause(&self) -> BoxFuture<'static, ()> {
        self.executor.sleep(PAUSE)
    }
}

/// Polls once, with the waker of this task.
pub(super) async fn polled<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    let mut future = pin!(future);
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}
