//! The client: connects, hands out primitives, closes.

use std::fmt;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use uuid::Uuid;

use crate::config::Config;
use crate::connection::{Connection, Warning};
use crate::context::Context;
use crate::driver::server_clock::ServerClock;
use crate::error::Result;
use crate::latch::CountDownLatch;
use crate::lock::Lock;
use crate::owned::Owned;
use crate::preflight::check;
use crate::reentry::Reentry;
use crate::runtime::{Executor, timeout};
use crate::rw_lock::RwLock;
use crate::semaphore::Semaphore;
use crate::stats::Stats;
use crate::trace;

/// One program's access to the primitives on one server. Cheap to clone; make one per process and share it.
///
/// A client has one connection for commands, one for its single subscription, and one background task each for
/// leases and messages, however many locks it holds or waits for. Made by `connect` of a runtime's module, such as
/// `bowline::tokio::connect(url)`, or by [`Client::connect`] from any executor and connection.
///
/// # Dropping
/// The tasks end, and the connections close, when the last handle is gone: clients, locks and guards alike. Releases
/// that were handed to the background are finished first, at most for the length of a lease.
///
/// When the runtime is shut down first, as at the end of a `main` that returns with a guard alive, its thread releases what is
/// held and queued before it goes on, for at most the [`shutdown_timeout`](crate::ConfigBuilder::shutdown_timeout) (250 ms);
/// what the server was not told by then ends with its lease. That needs a runtime that drops its tasks at its end, as tokio
/// does and the global ones of smol and async-std do not, and a connection that
/// [works without a runtime](Connection::without_runtime); after a crash or `exit` nothing is sent at all.
#[derive(Clone)]
pub struct Client {
    context: Arc<Context>,
    reentry: Arc<Reentry<Owned>>,
}

impl Client {
    /// A client over any executor and connection.
    ///
    /// Runs the scripts of every kind of primitive on scratch keys (`<prefix>:<kind>:{bowline-check}:<client id>`; a
    /// semaphore's are those of a read-write lock), so that a missing right or an unsuitable server is an error now, and
    /// subscribes the client's inbox.
    ///
    /// # Errors
    /// [`Denied`](crate::ErrorKind::Denied) if the user may not run a command or use a key or channel,
    /// [`Unsupported`](crate::ErrorKind::Unsupported), [`Unavailable`](crate::ErrorKind::Unavailable),
    /// [`Refused`](crate::ErrorKind::Refused) by a server that loads its data, or is a replica or full. Nothing is tried
    /// twice.
    ///
    /// [`ClientIdInUse`](crate::ErrorKind::ClientIdInUse): the [`client_id`](crate::ConfigBuilder::client_id) that was set is that
    /// of another client, whose inbox has a subscriber. A client that was closed or died counts as living until the server
    /// notices that its connection is gone: within milliseconds if the process ended, within minutes (`tcp-keepalive`) if
    /// its machine vanished. Two clients that connect at the same time may both fail. In a cluster, only subscribers at the
    /// same node are seen. Only connecting asks; a reconnect of the client does not.
    ///
    /// # Cancel safety
    /// Dropped, it may leave scratch keys behind, for at most an hour. Their counters (`<prefix>:lock:{bowline-check}:fence`
    /// and `<prefix>:rw:...`) always stay, for 1 h.
    pub async fn connect(executor: Arc<dyn Executor>, connection: Arc<dyn Connection>, config: Config) -> Result<Self> {
        let clock = Arc::new(ServerClock::default());
        let client = config.client_id.unwrap_or_else(draw);
        // On the heap: it is large, and its caller polls through frames that would all be as large.
        Box::pin(check(&*executor, &*connection, &config, client, &clock)).await?;
        let context = Context::start(executor, connection, config, client, clock).await?;
        context.connection.warnings().iter().for_each(|warning| trace::warning(warning));
        Ok(Self { context, reentry: Arc::new(Reentry::new()) })
    }

    /// The lock of this name: 1 to 512 bytes, any text. A bad name is an error of the first operation.
    pub fn lock(&self, name: &str) -> Lock {
        Lock::new(self.context.clone(), self.reentry.clone(), name)
    }

    /// The read-write lock of this name: as [`lock`](Self::lock), and a different thing from the lock of the same name.
    pub fn rw_lock(&self, name: &str) -> RwLock {
        RwLock::new(self.context.clone(), self.reentry.clone(), name)
    }

    /// The semaphore of this name with so many permits, 1 to [`MAX_PERMITS`](crate::MAX_PERMITS). A bad name or limit is
    /// an error of the first operation.
    pub fn semaphore(&self, name: &str, limit: u32) -> Semaphore {
        Semaphore::new(self.context.clone(), self.reentry.clone(), name, limit)
    }

    /// The count-down latch of this name. A bad name is an error of the first operation.
    pub fn latch(&self, name: &str) -> CountDownLatch {
        CountDownLatch::new(self.context.clone(), self.reentry.clone(), name)
    }

    /// What identifies this client in Redis, and in [`Lock::inspect`].
    pub fn id(&self) -> Uuid {
        self.context.client
    }

    /// What its tasks run on.
    pub fn executor(&self) -> &Arc<dyn Executor> {
        &self.context.executor
    }

    /// What was found wrong with the server's setup when connecting.
    pub fn warnings(&self) -> Vec<Warning> {
        self.context.connection.warnings()
    }

    /// What this client holds and waits for, and has done so far.
    pub fn stats(&self) -> Stats {
        Stats { reconnects: self.context.connection.reconnects(), ..self.context.engine.stats() }
    }

    /// Ends everything this client does, for all its clones.
    ///
    /// Acquisitions that wait fail with [`Closed`](crate::ErrorKind::Closed); guards still held are reported lost
    /// ([`Loss::Closed`](crate::Loss::Closed)); then both are removed from Redis, and the connections are closed. Takes
    /// at most the client's retry timeout; what the server could not be told by then ends with its lease. Later calls fail
    /// with `Closed`.
    ///
    /// # Cancel safety
    /// Dropped, the client is closed to new work, and the clean-up goes on as long as a handle lives.
    pub async fn close(&self) {
        let Context { executor, connection, engine, config, .. } = &*self.context;
        engine.close(executor.now());
        // A connection that never answers is cut off rather than waited for.
        let longest = config.retry_timeout.max(Duration::from_millis(1));
        timeout(executor, longest, engine.cleaned()).await.unwrap_or_default();
        engine.end();
        connection.close();
    }

    /// Runs `work` with a clone of this client, and closes the client, whatever becomes of the work. Closing is awaited, also
    /// when the work panics: the panic goes on afterwards. All clones are closed.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work, and is as dropping [`close`](Self::close).
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
        // The call of the closure may panic too. On the heap: it is of any size, and would be copied from frame to frame.
        let worked = Box::pin(AssertUnwindSafe(async move { work(client).await }).catch_unwind()).await;
        self.close().await;
        worked.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Closes to new work, and leaves the clean-up to the background.
    pub(crate) fn begin_close(&self) {
        self.context.engine.close(self.context.now());
    }
}

/// Begins to close, if that has not been done.
struct Closing<'a>(&'a Client);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.begin_close();
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place where identities are drawn")]
fn draw() -> Uuid {
    Uuid::new_v4()
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("prefix", &self.context.config.prefix).finish_non_exhaustive()
    }
}
