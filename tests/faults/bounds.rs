//! The bounds that a user can set hold on real servers, for every operation of both APIs, whatever is wrong with the
//! server. `tests/sim/bounds.rs` has the same operations in virtual time, where the bounds hold to the millisecond.
//! Here an operation that ignores its bound takes a minute, and one that respects it has far more time than it needs.

use std::time::Duration;

use bowline::{Acquire, Client, Config, ConfigBuilder, ErrorKind, Result, blocking};
use futures::FutureExt;
use futures::future::{BoxFuture, Either, join_all, select};

use crate::scene::ms;
use crate::support::env::{Env, on_every_runtime};
use crate::support::operations::on_threads::on_a_thread;
use crate::support::operations::{Operations, Prepared, asynchronous, on_threads};

on_every_runtime! {
    bounds_hold_where_rights_are_missing,
    bounds_hold_at_a_replica,
    bounds_hold_where_no_memory_is_left,
    bounds_hold_in_silence,
    bounds_hold_without_a_server,
}

async fn bounds_hold_where_rights_are_missing(env: Env) {
    bounds_hold(env, Trouble::Denied).await;
}

async fn bounds_hold_at_a_replica(env: Env) {
    bounds_hold(env, Trouble::Demoted).await;
}

async fn bounds_hold_where_no_memory_is_left(env: Env) {
    bounds_hold(env, Trouble::Full).await;
}

async fn bounds_hold_in_silence(env: Env) {
    bounds_hold(env, Trouble::Silent).await;
}

async fn bounds_hold_without_a_server(env: Env) {
    bounds_hold(env, Trouble::Absent).await;
}

/// What is wrong with the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    /// The user may not run scripts any more.
    Denied,
    /// It has become a replica of a server that is not there.
    Demoted,
    /// It has no memory for what is written.
    Full,
    Silent,
    Absent,
}

impl Trouble {
    fn begin(self, env: &Env) {
        match self {
            Self::Denied => env.redis::<()>(&["ACL", "SETUSER", "bowline", "-eval", "-evalsha"]),
            Self::Demoted => env.redis::<()>(&["REPLICAOF", "127.0.0.1", "1"]),
            Self::Full => env.redis::<()>(&["CONFIG", "SET", "maxmemory", "1"]),
            Self::Silent => env.server().pause(),
            Self::Absent => env.server().kill(),
        }
    }

    fn end(self, env: &Env) {
        match self {
            Self::Denied => env.redis::<()>(&["ACL", "SETUSER", "bowline", "+eval", "+evalsha"]),
            Self::Demoted => env.redis::<()>(&["REPLICAOF", "NO", "ONE"]),
            Self::Full => env.redis::<()>(&["CONFIG", "SET", "maxmemory", "0"]),
            Self::Silent => env.server().resume(),
            Self::Absent => env.server().restart(),
        }
    }

    /// The kinds of the errors that are due, and what they tell.
    fn told(self, bound: Bound) -> &'static [(ErrorKind, &'static str)] {
        use ErrorKind::{Denied, Refused, TimedOut, Unavailable};
        match (self, bound) {
            (Self::Denied, _) => &[(Denied, "NOPERM")],
            // The first call that is refused ends the connection, with the others that are on their way.
            (Self::Demoted, Bound::Command) => &[(Refused, "READONLY"), (Unavailable, "no answer")],
            (Self::Demoted, Bound::Retry) => &[(Refused, "READONLY")],
            (Self::Demoted, Bound::Timeout) => &[(TimedOut, "READONLY")],
            (Self::Full, Bound::Command) => &[(Refused, "OOM")],
            (Self::Full, Bound::Retry) => &[(Refused, "OOM")],
            (Self::Full, Bound::Timeout) => &[(TimedOut, "OOM")],
            (Self::Silent | Self::Absent, Bound::Command) => &[(Unavailable, "")],
            (Self::Silent, Bound::Retry) => &[(Unavailable, "")],
            // The first request of most has not ended.
            (Self::Silent, Bound::Timeout) => &[(TimedOut, "")],
            (Self::Absent, Bound::Retry) => &[(Unavailable, "connection refused")],
            (Self::Absent, Bound::Timeout) => &[(TimedOut, "connection refused")],
        }
    }

    /// Whether the operation may go through: it writes nothing, or nothing that takes memory.
    fn may_pass(self, operation: &str) -> bool {
        let reads = [
            "available",
            "inspect",
            "inspect_rw",
            "inspect_barrier",
            "inspect_double",
            "names",
            "leader",
            "ask_to_release",
            "force_release",
            "force_release_rw",
            "force_release_permits",
        ]
        .contains(&operation);
        let frees = [
            "count",
            "count_down",
            "delete",
            "wait",
            "reset",
            "extend",
            "resign",
            "drop_waiters",
            "drop_waiters_permits",
            "java_count",
            "java_count_down",
            "java_wait",
            "java_try_acquire",
            "java_try_permit",
            "java_inspect_permits",
            "java_release",
            "java_release_permit",
            "java_release_id",
        ]
        .contains(&operation);
        match self {
            Self::Denied | Self::Silent | Self::Absent => false,
            Self::Demoted => reads,
            Self::Full => reads || frees || operation.starts_with("release"),
        }
    }
}

/// The one bound of an operation that is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Retry,
    Command,
    Timeout,
}

const SHORT: Duration = ms(700);
const LONG: Duration = ms(60_000);

/// Longer than it takes until the heartbeats of a short lease are sent.
const TIMEOUT: Duration = ms(4000);
const SHORT_LEASE: Duration = ms(3000);

/// For what takes no longer than the timeout.
const GENEROUS: Duration = ms(15_000);

impl Bound {
    fn configure(self, config: ConfigBuilder) -> ConfigBuilder {
        let (retry_timeout, command_timeout) = match self {
            Self::Retry => (SHORT, LONG),
            Self::Command => (Duration::ZERO, SHORT),
            Self::Timeout => (LONG, LONG),
        };
        config.retry_timeout(retry_timeout).command_timeout(command_timeout).label("bounds")
    }

    /// The timeout of the caller.
    fn timeout(self) -> Option<Duration> {
        Some(TIMEOUT).filter(|_| self == Self::Timeout)
    }

    fn limit<G>(self, acquire: Acquire<G>) -> Acquire<G> {
        if let Some(timeout) = self.timeout() { acquire.timeout(timeout) } else { acquire }
    }
}

/// An operation of one of the APIs.
struct Cell {
    api: &'static str,
    name: &'static str,
    bound: Bound,
    work: Prepared,
}

impl Cell {
    /// Begins the operation. Resolves to what is wrong with its outcome.
    fn begin(self, env: &Env, trouble: Trouble) -> BoxFuture<'static, Option<String>> {
        let Self { api, name, bound, work } = self;
        let sleep = env.executor().sleep(GENEROUS);
        env.spawn(async move {
            let wrong = match select(work, sleep).await {
                Either::Left((outcome, _)) => wrong(trouble, bound, name, outcome),
                Either::Right(_) => Some("it went on".to_owned()),
            };
            wrong.map(|wrong| format!("{bound:?}, {api}, {name}: {wrong}"))
        })
    }
}

async fn bounds_hold(env: Env, trouble: Trouble) {
    // Latches, and what a server that is not there has.
    env.leaves_keys();
    // Each client has names of its own, because all prepare the same operations.
    env.redis::<()>(&["ACL", "SETUSER", "bowline", "allkeys", "allchannels", "+incrby"]);
    let (mut cells, mut queued) = (Vec::new(), Vec::new());
    for bound in [Bound::Retry, Bound::Command, Bound::Timeout] {
        // Without renewals and heartbeats, nothing but the operations finds out that the server is silent.
        for is_queued in [false, true] {
            let lease = if is_queued { SHORT_LEASE } else { LONG };
            let clients = [FUTURES, THREADS].map(|api| {
                let prefix = format!("{api}-{bound:?}-{is_queued}");
                env.client_with(move |config| bound.configure(config).lease(lease).prefix(prefix))
            });
            let clients: Vec<_> = join_all(clients).await.iter().map(|client| Client::clone(client)).collect();
            let (futures, threads) = (clients[0].clone(), blocking::Client::new(clients[1].clone()));
            let which = (bound, is_queued);
            let prepared = [
                prepared(FUTURES, asynchronous::OPERATIONS, futures, which).await,
                prepared(THREADS, on_threads::OPERATIONS, threads, which).await,
            ];
            if is_queued {
                queued.extend(clients.into_iter().zip(prepared));
            } else {
                cells.extend(prepared.into_iter().flatten());
            }
        }
        cells.extend(connects(&env, bound));
    }
    let mut outcomes = Vec::new();
    for (client, cells) in queued {
        outcomes.extend(cells.into_iter().map(|cell| cell.begin(&env, trouble)));
        // Two of them in one cohort.
        env.eventually("they wait", async || client.stats().waiting == 6).await;
    }
    trouble.begin(&env);
    outcomes.extend(cells.into_iter().map(|cell| cell.begin(&env, trouble)));
    let wrong: Vec<String> = join_all(outcomes).await.into_iter().flatten().collect();
    trouble.end(&env);
    assert!(wrong.is_empty(), "{trouble:?}, {} cells:\n{}", wrong.len(), wrong.join("\n"));
}

const FUTURES: &str = "futures";
const THREADS: &str = "threads";

/// The operations that have the bound: those that wait in the queue, or all others.
async fn prepared<C: Clone>(
    api: &'static str,
    operations: Operations<C>,
    client: C,
    (bound, is_queued): (Bound, bool),
) -> Vec<Cell> {
    let Operations { plain, held, queued, followers } = operations;
    let rows = if is_queued { queued.to_vec() } else { [plain, held, followers].concat() };
    let rows = rows.into_iter().filter(|(_, has_timeout, _)| *has_timeout || bound != Bound::Timeout);
    join_all(rows.map(|(name, _, prepare)| {
        let prepared = prepare(client.clone(), bound.timeout());
        async move { Cell { api, name, bound, work: prepared.await } }
    }))
    .await
}

/// Connecting is an operation, too. Its bound is the command timeout, unless it is done in the background.
fn connects(env: &Env, bound: Bound) -> Vec<Cell> {
    let (env, url) = (env.clone(), env.server().user_url());
    let of_url = url.clone();
    let configure = move |config| bound.configure(config).connect_in_background(bound != Bound::Command);
    let futures = async move {
        let client = env.client_at(&url, configure).await?;
        bound.limit(client.lock("connected").lock()).await.map(drop)
    };
    let threads = on_a_thread(move || {
        let client = blocking::connect_with(&of_url, configure(Config::builder()).build()?)?;
        bound.limit(client.lock("connected").lock()).block().map(drop)
    });
    let cell = |api, work| Cell { api, name: "connect", bound, work };
    vec![cell(FUTURES, futures.boxed()), cell(THREADS, threads)]
}

/// What is wrong with the outcome.
fn wrong(trouble: Trouble, bound: Bound, operation: &str, outcome: Result<()>) -> Option<String> {
    let Err(error) = outcome else {
        return (!trouble.may_pass(operation)).then(|| "it went through".to_owned());
    };
    let shown = format!("{error:#}");
    let is_due = trouble.told(bound).iter().any(|(kind, told)| error.kind() == *kind && shown.contains(told));
    // The last request, or the first attempt to connect, may be so late that a busy machine does not answer in time.
    let is_late = bound == Bound::Retry
        && error.kind() == ErrorKind::Unavailable
        && ["no answer: nothing within", "the first attempt to connect has not ended"]
            .iter()
            .any(|why| shown.contains(why));
    // What may have been executed is not sent again.
    let is_once = ["check", "until_ready"].contains(&operation)
        && error.kind() == ErrorKind::Unavailable
        && shown.contains("the request may have been executed");
    (!is_due && !is_late && !is_once).then(|| format!("{:?}: {shown}", error.kind()))
}
