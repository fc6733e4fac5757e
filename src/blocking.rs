//! The same primitives for code that is not async.
//!
//! Names and options are those of the async API. Where that says `.await` on a builder, this says
//! [`.block()`](Acquire::block); everything else blocks by itself. Nothing here does more than run the async API with
//! [`Executor::block_on`], so what is guaranteed there is guaranteed here, and both can be used side by side.
//!
//! - In a program without a runtime: `connect` (feature `blocking`), whose client brings a thread of its own.
//! - Beside a runtime: [`Client::new`] over the async client, on threads that may block, such as those of
//!   `tokio::task::spawn_blocking`, `smol::unblock` or `async_std::task::spawn_blocking`. The runtime must be running
//!   elsewhere: a current-thread runtime that no thread drives answers nobody.
//! - On a thread that drives async tasks, every call that would block is an
//!   [`InvalidInput`](crate::ErrorKind::InvalidInput) error that says so, as far as the runtime can tell: smol knows the
//!   threads of its global executor only, and tokio tells by a panic, which is caught, but which the panic hook sees, and
//!   which ends a program that is built with `panic = "abort"`.
//!
//! # Re-entrancy
//! A thread may acquire again what it holds, as in Java: it gets another guard of the same hold, at once. Each thread is a
//! [`Holder`](crate::Holder) of its own, unless [`holder`](Acquire::holder) names another. A thread that reads and asks to write gets
//! [`WouldDeadlock`](crate::ErrorKind::WouldDeadlock). Semaphores are not re-entrant.
//!
//! So a guard of the thread must not leave its thread: the next job on a pool thread would enter what it holds. Such a
//! guard is not `Send`. To hand a guard to another thread or out of a job, acquire it for a holder:
//! `lock.lock().holder(&Holder::new())`. See [`ThisThread`] and [`AnyThread`].
//!
//! # Scoped use
//! [`run`](Acquire::run) acquires, works and releases; [`Client::scope`] works and closes the client. Both do so whatever
//! becomes of the work.
//!
//! # Examples
//! ```no_run
//! # #[cfg(feature = "blocking")]
//! fn main() -> bowline::Result<()> {
//!     let client = bowline::blocking::connect("redis://127.0.0.1/")?;
//!     let orders = client.lock("orders:42");
//!     let guard = orders.lock().block()?;
//!     println!("writing with token {}", guard.token());
//!     guard.release()
//! }
//! # #[cfg(not(feature = "blocking"))]
//! # fn main() {}
//! ```
//!
//! Without a Redis (feature `embedded`), in place of the line with `connect`:
//!
//! ```
//! # #[cfg(feature = "blocking")]
//! # fn main() -> bowline::Result<()> {
//! let connected = smol::block_on(bowline::embedded::Server::new().client(bowline::smol::Smol))?;
//! let client = bowline::blocking::Client::new(connected);
//! # client.lock("a").lock().block()?.release() }
//! # #[cfg(not(feature = "blocking"))]
//! # fn main() {}
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use futures::future::BoxFuture;
use uuid::Uuid;

use crate::{Error, ErrorKind, Executor, Result, Stats, Warning};

mod guard;
mod latch;
mod lock;
mod options;
mod rw_lock;
mod semaphore;
mod threads;

pub use guard::{Guard, LockGuard, Permit, ReadGuard, WriteGuard};
pub use latch::{CountDownLatch, LatchWait};
pub use lock::Lock;
pub use options::{Acquire, TryAcquire};
pub use rw_lock::{RwLock, Upgrade};
pub use semaphore::Semaphore;
pub use threads::{AnyThread, ThisThread};

use threads::this_thread;

/// As [`bowline::Client`](crate::Client), for code that is not async. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    inner: crate::Client,
}

/// Connects to the server at `url` with the default settings. The client's tasks run on a thread of their own, smol's.
///
/// # Errors
/// As [`smol::connect`](crate::smol::connect).
#[cfg(feature = "blocking")]
pub fn connect(url: &str) -> Result<Client> {
    connect_with(url, crate::Config::default())
}

/// As [`connect`], with settings of one's own.
///
/// # Errors
/// As [`connect`].
#[cfg(feature = "blocking")]
pub fn connect_with(url: &str, config: crate::Config) -> Result<Client> {
    let executor: Arc<dyn Executor> = Arc::new(crate::smol::Smol);
    block(&executor, "connect", Box::pin(crate::smol::connect_with(url, config))).map(Client::new)
}

impl Client {
    /// The blocking view of a client.
    pub fn new(client: crate::Client) -> Self {
        Self { inner: client }
    }

    /// The async view of the same client.
    pub fn as_async(&self) -> &crate::Client {
        &self.inner
    }

    /// The lock of this name: see [`bowline::Client::lock`](crate::Client::lock).
    pub fn lock(&self, name: &str) -> Lock {
        Lock::new(self.inner.lock(name), self.inner.executor().clone())
    }

    /// The read-write lock of this name: see [`bowline::Client::rw_lock`](crate::Client::rw_lock).
    pub fn rw_lock(&self, name: &str) -> RwLock {
        RwLock::new(self.inner.rw_lock(name), self.inner.executor().clone())
    }

    /// The semaphore of this name: see [`bowline::Client::semaphore`](crate::Client::semaphore).
    pub fn semaphore(&self, name: &str, limit: u32) -> Semaphore {
        Semaphore::new(self.inner.semaphore(name, limit), self.inner.executor().clone())
    }

    /// The count-down latch of this name: see [`bowline::Client::latch`](crate::Client::latch).
    pub fn latch(&self, name: &str) -> CountDownLatch {
        CountDownLatch::new(self.inner.latch(name), self.inner.executor().clone())
    }

    /// See [`bowline::Client::id`](crate::Client::id).
    pub fn id(&self) -> Uuid {
        self.inner.id()
    }

    /// See [`bowline::Client::warnings`](crate::Client::warnings).
    pub fn warnings(&self) -> Vec<Warning> {
        self.inner.warnings()
    }

    /// See [`bowline::Client::stats`](crate::Client::stats).
    pub fn stats(&self) -> Stats {
        self.inner.stats()
    }

    /// See [`bowline::Client::close`](crate::Client::close).
    ///
    /// # Errors
    /// Only those of a thread that may not block, and [`Closed`](ErrorKind::Closed) of a runtime that is shut down.
    pub fn close(&self) -> Result<()> {
        self.inner.executor().block_on(Box::pin(self.inner.close()))
    }

    /// Calls `work` with this client, and closes the client, whatever becomes of the work: see
    /// [`bowline::Client::scope`](crate::Client::scope). On a thread that may not block, the clean-up goes on in the
    /// background.
    pub fn scope<O>(&self, work: impl FnOnce(&Self) -> O) -> O {
        let worked = catch_unwind(AssertUnwindSafe(|| work(self)));
        if self.close().is_err() {
            self.inner.begin_close();
        }
        worked.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl From<crate::Client> for Client {
    fn from(client: crate::Client) -> Self {
        Self::new(client)
    }
}

/// Runs the future of an operation on this thread.
fn block<T: Send>(
    executor: &Arc<dyn Executor>,
    operation: &'static str,
    future: BoxFuture<'_, Result<T>>,
) -> Result<T> {
    let mut output = None;
    let blocked = executor.block_on(Box::pin(async { output = Some(future.await) }));
    threads::blocked();
    blocked?;
    output.unwrap_or_else(|| Err(Error::new(ErrorKind::Closed, operation)))
}
