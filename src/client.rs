//! The client: connects, hands out primitives, closes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::check::check;
use crate::config::Config;
use crate::connection::{Connection, Warning};
use crate::context::Context;
use crate::error::Result;
use crate::executor::{Executor, timeout};
use crate::latch::CountDownLatch;
use crate::lock::Lock;
use crate::owned::Owned;
use crate::reentry::Reentry;
use crate::rw_lock::RwLock;
use crate::semaphore::Semaphore;
use crate::server_clock::ServerClock;
use crate::stats::Stats;

/// One program's access to the primitives on one server. Cheap to clone; make one per process and share it.
///
/// A client has one connection for commands, one for its single subscription, and one background task each for
/// leases and messages, however many locks it holds or waits for. Made by `connect` of a runtime's module, such as
/// `bowline::tokio::connect(url)`, or by [`Client::new`] from any executor and connection.
///
/// # Dropping
/// The tasks end, and the connections close, when the last handle is gone: clients, locks and guards alike. Releases
/// that were handed to the background are finished first, at most for the length of a lease.
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
    /// # Cancel safety
    /// Dropped, it may leave scratch keys behind, for at most an hour. Their counters (`<prefix>:lock:{bowline-check}:fence`
    /// and `<prefix>:rw:...`) always stay, for 1 h.
    pub async fn new(executor: Arc<dyn Executor>, connection: Arc<dyn Connection>, config: Config) -> Result<Self> {
        let clock = Arc::new(ServerClock::default());
        // On the heap: it is large, and its caller polls through frames that would all be as large.
        Box::pin(check(&*executor, &*connection, &config, &clock)).await?;
        let context = Context::start(executor, connection, config, clock).await?;
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
        self.context.config.client_id
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
        Stats { reconnects: self.context.connection.reconnects(), ..self.context.ledger.stats() }
    }

    /// Ends everything this client does, for all its clones.
    ///
    /// Acquisitions that wait fail with [`Closed`](crate::ErrorKind::Closed); guards still held are reported lost
    /// ([`Loss::Closed`](crate::Loss::Closed)); then both are removed from Redis, and the connections are closed. Takes
    /// at most the client's patience; what the server could not be told by then ends with its lease. Later calls fail
    /// with `Closed`.
    ///
    /// # Cancel safety
    /// Dropped, the client is closed to new work, and the clean-up goes on as long as a handle lives.
    pub async fn close(&self) {
        let Context { executor, connection, ledger, config, .. } = &*self.context;
        ledger.close(executor.now());
        // A connection that never answers is cut off rather than waited for.
        let longest = config.patience.max(Duration::from_millis(1));
        timeout(executor, longest, ledger.cleaned()).await.unwrap_or_default();
        ledger.end();
        connection.close();
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("prefix", &self.context.config.prefix).finish_non_exhaustive()
    }
}
