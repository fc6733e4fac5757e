//! The check of connections.

use std::fmt::{self, Display};
use std::future::{Future, IntoFuture};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;

use self::lab::Lab;
use super::clause::Clause;
use super::disturb::Disturb;
use super::report::{Checked, Report, panicked};
use crate::config::Config;
use crate::connection::Connection;
use crate::runtime::{self, Executor};

mod acknowledged;
mod answers;
mod closing;
mod gaps;
mod lab;
mod lost;
mod messages;
mod order;
mod without_runtime;

type Check = for<'a> fn(&'a Lab<'_>) -> BoxFuture<'a, Checked>;

macro_rules! checks {
    ($($clause:ident: $($check:ident)::+),+ $(,)?) => {
        &[$((Clause::$clause, |lab| Box::pin($($check)::+(lab)))),+]
    };
}

const CHECKS: &[(Clause, Check)] = checks![
    Connects: answers::connects,
    Replies: answers::replies,
    NewScripts: answers::new_scripts,
    LostScripts: answers::lost_scripts,
    OwnAnswers: answers::own,
    Refusals: answers::refusals,
    Order: order::calls,
    Batches: order::batches,
    DroppedCalls: order::dropped_calls,
    KeptCalls: order::kept_calls,
    Acknowledged: acknowledged::answered_in_order,
    AtMostOnce: lost::at_most_once,
    Outcomes: lost::outcomes,
    Deadline: lost::deadline,
    Reconnects: lost::reconnects,
    Subscribed: messages::subscribed,
    Messages: delivered,
    Channels: messages::own_channel,
    Unsubscribes: messages::unsubscribes,
    DroppedSubscribe: messages::dropped_subscribe,
    Gaps: gaps::told,
    BothGaps: gaps::told_twice,
    Restored: gaps::restored,
    WatchedKeys: messages::watched_keys,
    CloseFailsCalls: closing::fails_calls,
    CloseEndsStreams: closing::ends_streams,
    DropCloses: closing::by_drop,
    WithoutRuntime: without_runtime::reaches_the_server,
];

/// While the subscription stands, and after an interruption if there can be one.
async fn delivered(lab: &Lab<'_>) -> Checked {
    messages::delivered(lab).await?;
    if lab.disturb.is_some() { gaps::delivered_after(lab).await } else { Ok(()) }
}

/// Checks the contract of [`Connection`].
///
/// `connect` is called many times, and must return a new connection to the same real server each time.
/// The executor is that of the connections and must keep its own contract: see
/// [`check_executor`](super::check_executor).
///
/// The clauses about lost answers and interruptions are checked only with [`disturb`](CheckConnection::disturb). On a
/// local server a whole check takes a few seconds, and one [`command_timeout`](CheckConnection::command_timeout) more.
///
/// # Redis keys
/// Keys `bowline:testing:{<random>}:<n>`, which expire after 10 min, and channels `bowline:inbox:testing:<random>:<n>`,
/// so that the rights of docs/acl.md are enough.
///
/// # Errors
/// The report, if a clause failed. It does not fail because of a clause that was not checked.
///
/// # Cancel safety
/// The check ends when the future is dropped. Its keys expire.
pub fn check_connection<'a, F, Fut, C, E>(executor: impl Executor, connect: F) -> CheckConnection<'a>
where
    F: Fn() -> Fut + Send + Sync + 'a,
    Fut: Future<Output = Result<C, E>> + Send + 'a,
    C: Connection,
    E: Display,
{
    let connect = move || {
        let connecting = connect();
        async move {
            match connecting.await {
                Ok(connection) => Ok(Box::new(connection) as Box<dyn Connection>),
                Err(error) => Err(error.to_string()),
            }
        }
        .boxed()
    };
    CheckConnection { lab: Lab::new(Arc::new(executor), Box::new(connect), Config::default().command_timeout) }
}

/// A check of connections that starts when it is awaited. Made by [`check_connection`].
#[must_use = "nothing is checked before this is awaited"]
pub struct CheckConnection<'a> {
    lab: Lab<'a>,
}

impl<'a> CheckConnection<'a> {
    /// What disturbs the connections, such as a [`Relay`](super::Relay) that they go through. Without it, the clauses
    /// about lost answers and interruptions are not checked.
    pub fn disturb(mut self, disturb: &'a dyn Disturb) -> Self {
        self.lab.disturb = Some(disturb);
        self
    }

    /// The time within which the connections promise to answer. The default is that of
    /// [`Config`](crate::ConfigBuilder::command_timeout), 3 s.
    pub fn command_timeout(mut self, command_timeout: Duration) -> Self {
        self.lab.command_timeout = command_timeout;
        self
    }

    /// The longest wait for one clause, after which the clause has failed. It must be longer than two
    /// `command_timeout`s, and longer than a connection takes to reconnect. The default is 30 s.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.lab.limit = limit;
        self
    }

    async fn run(self) -> Report {
        let mut report = Report::new("bowline::Connection");
        for (clause, check) in CHECKS {
            // A check must not take the others with it.
            let checked = AssertUnwindSafe(check(&self.lab)).catch_unwind();
            let checked = match runtime::timeout(&self.lab.executor, self.lab.limit, checked).await {
                Some(Ok(checked)) => checked,
                Some(Err(panic)) => Err(panicked(&*panic)),
                None => Err(self.lab.out_of_time()),
            };
            report.add(*clause, checked);
        }
        report
    }
}

impl<'a> IntoFuture for CheckConnection<'a> {
    type Output = Result<Report, Report>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.run().await.into_result() })
    }
}

impl fmt::Debug for CheckConnection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckConnection").field("executor", &self.lab.executor).finish_non_exhaustive()
    }
}
