//! The client: connecting, the handles of the primitives, closing.

use std::fmt;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use uuid::Uuid;

use crate::barrier::Barrier;
use crate::config::Config;
use crate::connection::{Connection, Warning};
use crate::context::Context;
use crate::double_barrier::DoubleBarrier;
use crate::election::Election;
use crate::engine::lease::Loss;
use crate::error::Result;
use crate::hold::owner::HoldSource;
use crate::latch::CountDownLatch;
use crate::limiter::{Quota, RateLimiter};
use crate::lock::Lock;
use crate::multi_lock::MultiLock;
use crate::observe::meter;
use crate::once::{Once, Schedule};
use crate::opening::{Notices, Opening};
use crate::redisson::Redisson;
use crate::runtime::{Executor, timeout};
use crate::rw_lock::RwLock;
use crate::semaphore::Semaphore;
use crate::stats::Stats;

/// A program's access to the primitives on one server. Cheap to clone: make one client per process and share it.
///
/// On one server, a client has one connection for commands, one connection for its subscription, and two background
/// tasks, one for leases and one for messages. Their number does not grow with the number of locks. Behind sentinels
/// it also has one connection to each sentinel, up to 16. In a cluster it has up to two to each master. It needs one
/// more for each name that [`changes`](crate::Lock::changes) watches, for each number of replicas in
/// [`acknowledged_by`](crate::Acquire::acknowledged_by), and for each name [shared with Java](Self::redisson) that it
/// waits for.
///
/// `connect` of a runtime's module makes a client, such as `bowline::tokio::connect(url)`. [`Client::connect`] makes
/// one from any executor and connection.
///
/// # Dropping
/// The tasks end and the connections close when the last clone, primitive and guard of the client is dropped.
/// Background releases are finished first, for at most one lease, and the [label](crate::ConfigBuilder::label) is
/// removed.
///
/// # Shutdown of the runtime
/// If the runtime is shut down while the client holds or waits, the thread that shuts it down releases the holds and
/// leaves the queues. This happens, for example, if `main` returns while a guard is alive. It takes at most the
/// [`shutdown_timeout`](crate::ConfigBuilder::shutdown_timeout) (default 1 s). Holds that the server was not told about
/// in that time end with their leases.
///
/// Two conditions apply. The runtime must drop its tasks when it shuts down: tokio does, the global executors of smol
/// and async-std do not. The connection must [work without a runtime](Connection::without_runtime). After a crash, a
/// kill or `exit` nothing is sent.
#[derive(Clone)]
pub struct Client {
    pub(crate) source: Arc<HoldSource>,
}

impl Client {
    /// Connects a client over any executor and connection.
    ///
    /// Subscribes the client's inbox. Issues every command that the scripts issue, on keys of its own,
    /// `<prefix>:<kind>:{bowline-check}:<client id>`, so that a missing right or an unsuitable server is an error at
    /// once. With [`connect_in_background`](crate::ConfigBuilder::connect_in_background), a task does that, and this
    /// function returns at once and without an error.
    ///
    /// # Errors
    /// No request is retried.
    /// - [`Denied`](crate::ErrorKind::Denied): the user may not run a command or use a key or a channel.
    /// - [`Refused`](crate::ErrorKind::Refused): the server loads its data, is a replica or is full.
    /// - [`Unsupported`](crate::ErrorKind::Unsupported): the server is too old, lacks a command or is not Redis.
    /// - [`Unavailable`](crate::ErrorKind::Unavailable): the server gave no answer.
    /// - [`ClientIdInUse`](crate::ErrorKind::ClientIdInUse): another client with the configured
    ///   [`client_id`](crate::ConfigBuilder::client_id) is subscribed to the inbox.
    ///
    /// A client that was closed or has crashed is subscribed until the server notices that its connection is gone:
    /// milliseconds after the process has ended, or minutes after its machine has vanished (the server's
    /// `tcp-keepalive`). Two clients that connect with one identity at the same time may both fail. A cluster reveals
    /// only the subscribers of one node. A reconnect does not check the identity again.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing in Redis.
    pub async fn connect(executor: Arc<dyn Executor>, connection: Arc<dyn Connection>, config: Config) -> Result<Self> {
        let opening = Opening::new(executor, connection, config);
        if opening.config.is_in_background {
            return Ok(Self::over(Context::start_in_background(opening)));
        }
        Self::open(opening, None).await
    }

    /// Makes the client, with the notices of its inbox if that is subscribed and the server is checked.
    pub(crate) async fn open(opening: Opening, opened: Option<Notices>) -> Result<Self> {
        let context = match opened {
            Some(notices) => Context::opened(opening.clone(), notices),
            None => Context::start(opening.clone(), opening.check()).await?,
        };
        opening.warn();
        Ok(Self::over(context))
    }

    fn over(context: Arc<Context>) -> Self {
        meter::began(Loss::OF_A_CLIENT.map(Loss::word));
        Self { source: HoldSource::new(context) }
    }

    /// Returns the lock `name`, which is any text of 1 to 512 bytes. An invalid name is an error of the first
    /// operation. Sends nothing.
    pub fn lock(&self, name: &str) -> Lock {
        Lock::new(&self.source, name)
    }

    /// Returns the read-write lock `name`, which is independent of the lock of the same name. Names are those of
    /// [`lock`](Self::lock). Sends nothing.
    pub fn rw_lock(&self, name: &str) -> RwLock {
        RwLock::new(&self.source, name)
    }

    /// Returns the semaphore `name` with `limit` permits, 1 to [`MAX_PERMITS`](crate::MAX_PERMITS). Names are those of
    /// [`lock`](Self::lock). An invalid limit is an error of the first operation. Sends nothing.
    pub fn semaphore(&self, name: &str, limit: u32) -> Semaphore {
        Semaphore::new(&self.source, name, limit)
    }

    /// Returns the count-down latch `name`. Names are those of [`lock`](Self::lock). Sends nothing.
    pub fn latch(&self, name: &str) -> CountDownLatch {
        CountDownLatch::new(&self.source, name)
    }

    /// Returns the barrier `name` for so many parties, 1 to [`MAX_BARRIER_PARTIES`](crate::MAX_BARRIER_PARTIES). Names
    /// are those of [`lock`](Self::lock). An invalid number is an error of the first operation. Sends nothing.
    pub fn barrier(&self, name: &str, parties: u32) -> Barrier {
        Barrier::new(&self.source, name, parties)
    }

    /// Returns the double barrier `name` for so many parties, 1 to [`MAX_BARRIER_PARTIES`](crate::MAX_BARRIER_PARTIES):
    /// they begin together and end together. Names are checked when they are used.
    pub fn double_barrier(&self, name: &str, parties: u32) -> DoubleBarrier {
        DoubleBarrier::new(&self.source, name, parties)
    }

    /// Returns work that runs at most once in each period of the [`Schedule`], such as a [`Duration`], over all
    /// programs. All of them must use the same one for a name. Names are those of [`lock`](Self::lock). Sends nothing.
    pub fn once(&self, name: &str, schedule: impl Into<Schedule>) -> Once {
        Once::new(&self.source, name, schedule.into())
    }

    /// Returns the election `name`, in which programs campaign to lead. Names are those of [`lock`](Self::lock). Sends
    /// nothing.
    pub fn election(&self, name: &str) -> Election {
        Election::new(&self.source, name)
    }

    /// Returns the rate limiter `name` with a quota. Names are those of [`lock`](Self::lock). An invalid quota is an
    /// error of the first operation. Sends nothing.
    pub fn rate_limiter(&self, name: &str, quota: Quota) -> RateLimiter {
        RateLimiter::new(&self.source, name, quota)
    }

    /// Returns the locks `names`, to be acquired together. Names are those of [`lock`](Self::lock). [`MultiLock::new`]
    /// mixes primitives of other kinds and of other clients. Sends nothing.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(client: bowline::Client) -> bowline::Result<()> {
    /// let guard = client.lock_all(["alice", "bob"]).acquire().await?;
    /// # guard.release().await }
    /// ```
    pub fn lock_all<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) -> MultiLock {
        names.into_iter().fold(MultiLock::new(), |all, name| all.lock(&self.lock(name.as_ref())))
    }

    /// Returns the locks that Java programs share by Redisson. They have names and keys of their own, without the
    /// client's prefix. Sends nothing.
    pub fn redisson(&self) -> Redisson {
        Redisson::new(&self.source)
    }

    /// The identity of this client in Redis and in [`Lock::inspect`].
    pub fn id(&self) -> Uuid {
        self.context().client
    }

    /// The executor that runs the client's tasks.
    pub fn executor(&self) -> &Arc<dyn Executor> {
        &self.context().executor
    }

    /// The problems of the server's setup that were found when connecting. Empty until the client
    /// [has connected](crate::ConfigBuilder::connect_in_background).
    pub fn warnings(&self) -> Vec<Warning> {
        self.context().warnings()
    }

    /// The counters of this client: its holds, its waiters and its past operations.
    pub fn stats(&self) -> Stats {
        Stats { reconnects: self.context().connection.reconnects(), ..self.context().engine.stats() }
    }

    /// Closes this client and all its clones.
    ///
    /// Waiting acquisitions fail with [`Closed`](crate::ErrorKind::Closed), and live guards lose their hold
    /// ([`Loss::Closed`](crate::Loss::Closed)). Their tickets and holds are removed from Redis, and then the
    /// connections are closed. This takes at most the client's [`retry_timeout`](crate::ConfigBuilder::retry_timeout).
    /// A hold that could not be removed in that time ends with its lease. With a `retry_timeout` of zero, that time is
    /// 1 ms. All later operations fail with `Closed`.
    ///
    /// # Cancel safety
    /// After the first poll, the client accepts no new work. If the future is dropped, the removal continues in the
    /// background while a clone, primitive or guard of the client exists.
    pub async fn close(&self) {
        let Context { executor, engine, config, label, .. } = &**self.context();
        engine.close(executor.now());
        // Without a connection, nothing is left on the server.
        if self.context().not_connected().is_none() {
            // The timeout ends the wait for a connection that never answers.
            let longest = config.retry_timeout.max(Duration::from_millis(1));
            // On the heap, because it is larger than what else is awaited here.
            let cleaned = Box::pin(async {
                engine.cleaned().await;
                if let Some(label) = label {
                    label.remove(executor, self.context().scripts()).await;
                }
            });
            timeout(executor, longest, cleaned).await.unwrap_or_default();
        }
        engine.end_now(executor.now());
        self.context().disconnect();
    }

    /// Runs `work` with a clone of this client, then [closes](Self::close) the client and all its clones.
    ///
    /// The client is also closed if `work` fails or panics. A panic resumes after the client is closed.
    ///
    /// # Cancel safety
    /// Dropping the future drops `work` and closes the client in the background, as dropping [`close`](Self::close)
    /// does.
    ///
    /// # Examples
    /// ```no_run
    /// # #[cfg(feature = "tokio")]
    /// #[tokio::main]
    /// async fn main() -> bowline::Result<()> {
    ///     let client = bowline::tokio::connect("redis://127.0.0.1/").await?;
    ///     client.scope(work).await
    /// }
    ///
    /// async fn work(client: bowline::Client) -> bowline::Result<()> {
    ///     let _guard = client.lock("orders:42").lock().await?;
    ///     // ... returns early, or fails, or panics
    ///     Ok(())
    /// }
    /// # #[cfg(not(feature = "tokio"))]
    /// # fn main() {}
    /// ```
    pub async fn scope<F, W>(&self, work: F) -> W::Output
    where
        F: FnOnce(Self) -> W,
        W: Future,
    {
        let _closing = Closing(self);
        let client = self.clone();
        // The async block also catches a panic of the call itself. Boxed because the future of the work can be large.
        let worked = Box::pin(AssertUnwindSafe(async move { work(client).await }).catch_unwind()).await;
        self.close().await;
        worked.unwrap_or_else(|panic| resume_unwind(panic))
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.source.context
    }

    /// Refuses new work and removes tickets and holds in the background.
    pub(crate) fn begin_close(&self) {
        self.context().engine.close(self.context().now());
    }
}

/// Begins to close the client when it is dropped. This changes nothing if the client is closed already.
struct Closing<'a>(&'a Client);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.begin_close();
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("prefix", &self.context().config.prefix).finish_non_exhaustive()
    }
}
