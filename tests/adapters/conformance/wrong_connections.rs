//! Connections that are wrong in one way each, and the clauses that their checks must name.

mod calls;
mod rows;
mod streams;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bowline::testing::{Clause, Relay, check_connection};
use bowline::tokio::Tokio;
use bowline::{
    Acknowledged, BoxStream, Call, Config, Connection, ConnectionError, Executor, Notice, RedisConnection, Reply,
    Topology, async_trait,
};
use futures::StreamExt;
use futures::future::ready;

use self::calls::WrongCall;
use self::streams::WrongStream;
use super::failed;
use crate::support::adapters::bounded;
use crate::support::server::Server;

const TIMEOUT: Duration = Duration::from_secs(2);

/// What is wrong with the connection.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    Call(WrongCall),
    Stream(WrongStream),
    /// The second connection cannot be made.
    ConnectsOnce,
    /// `close` works, but is not what it says afterwards.
    ForgetsThatItIsClosed,
    /// Others share the connection.
    OutlivesItsDrop,
    /// The connection without a runtime leads elsewhere.
    SaysGoodByeElsewhere,
    /// The connection without a runtime needs the runtime.
    SaysGoodByeInTheRuntime,
    /// The answers of calls that wait for replicas are in the wrong order.
    MixesAcknowledged,
    /// Reports each second change of a watched key.
    MissesChanges,
}

/// What all connections of a check share.
struct Shared {
    wrong: Wrong,
    executor: Arc<dyn Executor>,
    server: Server,
    /// The scripts that were sent by themselves.
    scripts: Mutex<Vec<&'static str>>,
    connected: AtomicU64,
    kept: Mutex<Vec<Arc<RedisConnection>>>,
}

struct WrongConnection {
    inner: Arc<RedisConnection>,
    shared: Arc<Shared>,
    calls: AtomicU64,
    under_way: AtomicU64,
    places: tokio::sync::Semaphore,
    last: Mutex<Option<Reply>>,
    channels: Mutex<Option<String>>,
    /// Each call waits for a timer of the runtime first. An answer of the server alone may be there at the next poll.
    waits_for_runtime: bool,
}

impl std::fmt::Debug for WrongConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.shared.wrong.fmt(f)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl Connection for WrongConnection {
    fn inner(&self) -> Option<&dyn Connection> {
        Some(&*self.inner)
    }

    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
        if self.waits_for_runtime {
            self.shared.executor.sleep(TIMEOUT).await;
        }
        match self.shared.wrong {
            Wrong::Call(wrong) => self.wrong_call(wrong, call).await,
            Wrong::ForgetsThatItIsClosed => self.inner.run(call).await.map_err(as_unknown),
            _ => self.inner.run(call).await,
        }
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        match self.shared.wrong {
            Wrong::Call(wrong) => self.wrong_batch(wrong, calls).await,
            _ => self.inner.run_batch(calls).await,
        }
    }

    async fn run_acknowledged(
        &self,
        calls: &[Call<'_>],
        replicas: u32,
        within: Duration,
    ) -> Vec<Result<Acknowledged, ConnectionError>> {
        let mut answers = self.inner.run_acknowledged(calls, replicas, within).await;
        if matches!(self.shared.wrong, Wrong::MixesAcknowledged) {
            answers.reverse();
        }
        answers
    }

    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        match self.shared.wrong {
            Wrong::Stream(wrong) => self.wrong_stream(wrong, channel).await,
            _ => self.inner.subscribe(channel).await,
        }
    }

    async fn watch_key(&self, key: &str, inbox: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        let notices = self.inner.watch_key(key, inbox).await?;
        Ok(match self.shared.wrong {
            Wrong::MissesChanges => notices.enumerate().filter(|(n, _)| ready(n % 2 == 0)).map(|(_, it)| it).boxed(),
            _ => notices,
        })
    }

    fn topology(&self) -> Topology {
        self.inner.topology()
    }

    fn without_runtime(&self, within: Duration) -> Option<Box<dyn Connection>> {
        match self.shared.wrong {
            Wrong::SaysGoodByeElsewhere => {
                Some(Box::new(bowline::embedded::Server::new().connect(self.shared.executor.clone())))
            }
            Wrong::SaysGoodByeInTheRuntime => {
                let shared = self.shared.clone();
                let opened = std::thread::spawn(move || {
                    let (executor, url, mut opened) = (shared.executor.clone(), shared.server.url(), None);
                    let opening = async { opened = connect(url, shared).await.ok() };
                    executor.block_on(Box::pin(opening)).unwrap();
                    opened.map(|alone| WrongConnection { waits_for_runtime: true, ..alone })
                });
                Some(Box::new(opened.join().unwrap()?))
            }
            _ => self.inner.without_runtime(within),
        }
    }

    fn close(&self) {
        self.inner.close();
    }
}

fn as_unknown(error: ConnectionError) -> ConnectionError {
    match error {
        ConnectionError::Closed => ConnectionError::Unknown("closed".to_owned()),
        other => other,
    }
}

/// Checks connections that are wrong in this way. `limit` is the longest wait for a clause.
fn fails_within(limit: Duration, wrong: Wrong, expected: &'static [Clause]) {
    bounded(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let executor: Arc<dyn Executor> = Arc::new(Tokio::new(runtime.handle().clone()));
        let server = Server::start();
        let relay = Relay::start(("127.0.0.1", server.port())).unwrap();
        let shared = Arc::new(Shared {
            wrong,
            executor: executor.clone(),
            server,
            scripts: Mutex::default(),
            connected: AtomicU64::new(0),
            kept: Mutex::default(),
        });
        let url = format!("redis://{}/", relay.address());
        let connect = || connect(url.clone(), shared.clone());
        let check = check_connection(executor, connect).disturb(&relay).command_timeout(TIMEOUT).limit(limit);
        assert_eq!(failed(runtime.block_on(check.into_future())), expected);
    });
}

fn fails(wrong: Wrong, expected: &'static [Clause]) {
    fails_within(Duration::from_secs(30), wrong, expected);
}

async fn connect(url: String, shared: Arc<Shared>) -> Result<WrongConnection, String> {
    let number = shared.connected.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    if number == 1 && matches!(shared.wrong, Wrong::ConnectsOnce) {
        return Err("on purpose".to_owned());
    }
    let config = Config::builder().command_timeout(TIMEOUT).build().unwrap();
    let inner = bowline::tokio::open(shared.executor.clone(), url.as_str(), &config).await;
    let inner = Arc::new(inner.map_err(|error| error.to_string())?);
    if matches!(shared.wrong, Wrong::OutlivesItsDrop) {
        lock(&shared.kept).push(inner.clone());
    }
    Ok(WrongConnection {
        inner,
        shared,
        calls: AtomicU64::new(0),
        under_way: AtomicU64::new(0),
        places: tokio::sync::Semaphore::new(64),
        last: Mutex::default(),
        channels: Mutex::default(),
        waits_for_runtime: false,
    })
}
