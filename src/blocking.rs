//! The primitives for code that is not async.
//!
//! Names, options and guarantees are those of the async API. [`Client`] and the handles of the primitives have the same
//! methods, which block the calling thread. The builders of an acquisition are the same types: call
//! [`.block()`](crate::Acquire::block) where async code would `.await`. Every call runs the async operation with
//! [`Executor::block_on`], and both APIs can share one client.
//!
//! # Which threads may block
//! - A program without a runtime connects with `connect` (feature `blocking`). The client brings its own thread.
//! - A program with a runtime wraps its async client in [`Client::new`]. It blocks only on threads meant for that, such as
//!   those of `tokio::task::spawn_blocking`, `smol::unblock` or `async_std::task::spawn_blocking`. The runtime must be running:
//!   a call never returns if it depends on a current-thread runtime that no thread drives.
//!
//! # Errors
//! Every blocking call can return two errors in addition to those of its async counterpart:
//! - [`InvalidInput`](crate::ErrorKind::InvalidInput) on a thread that drives async tasks, where blocking could stop the runtime.
//!   The check is only as good as the runtime allows. smol recognises only the threads of its global executor. tokio reports
//!   such a thread by a panic, which bowline catches. The panic hook still runs, and a program built with `panic = "abort"`
//!   ends.
//! - [`Closed`](crate::ErrorKind::Closed) if the runtime is shut down.
//!
//! # Re-entrancy
//! Each thread is a [`Holder`](crate::Holder) of its own. A thread that acquires what it already holds gets another guard of
//! the same hold at once, as in Java. A thread that reads and then asks to write gets
//! [`WouldDeadlock`](crate::ErrorKind::WouldDeadlock). Semaphores are not re-entrant.
//!
//! A guard of the thread is not `Send`: on another thread, the next job of a thread pool could re-enter its hold. To move a
//! guard to another thread or out of a job, acquire it for an explicit holder: `lock.lock().holder(&Holder::new())`. See
//! [`ThisThread`] and [`AnyThread`].
//!
//! # Scoped use
//! `run` of a builder acquires, works and releases. [`Client::scope`] works and closes the client. Both clean up even if the
//! work fails or panics.
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
//! Without a Redis server (feature `embedded`), replace the line with `connect`:
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

mod acquire;
mod guard;
mod latch;
mod lock;
mod rw_lock;
mod semaphore;
mod threads;

pub use acquire::{Acquire, TryAcquire};
pub use guard::{Guard, LockGuard, Permit, ReadGuard, WriteGuard};
pub use latch::CountDownLatch;
pub use lock::Lock;
pub use rw_lock::{RwLock, Upgrade};
pub use semaphore::Semaphore;
pub use threads::{AnyThread, ThisThread};

/// The builder is the same in both APIs: call [`block`](LatchWait::block) or `.await`.
#[doc(no_inline)]
pub use crate::LatchWait;

use threads::this_thread;

/// A client for blocking code: see [`bowline::Client`](crate::Client). Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    inner: crate::Client,
}

/// Connects to the server at `url` with the default settings. The client's tasks run on a thread of smol's global executor.
///
/// # Errors
/// Those of [`smol::connect`](crate::smol::connect) and [those of blocking](self#errors).
#[cfg(feature = "blocking")]
pub fn connect(url: &str) -> Result<Client> {
    connect_with(url, crate::Config::default())
}

/// Connects as [`connect`] does, with the settings in `config`.
///
/// # Errors
/// Those of [`connect`].
#[cfg(feature = "blocking")]
pub fn connect_with(url: &str, config: crate::Config) -> Result<Client> {
    let executor: Arc<dyn Executor> = Arc::new(crate::smol::Smol);
    block(&executor, "connect", Box::pin(crate::smol::connect_with(url, config))).map(Client::new)
}

impl Client {
    /// Wraps an async client. Both share all state.
    pub fn new(client: crate::Client) -> Self {
        Self { inner: client }
    }

    /// The async client that this one wraps.
    pub fn as_async(&self) -> &crate::Client {
        &self.inner
    }

    /// Returns the lock `name`: see [`bowline::Client::lock`](crate::Client::lock).
    pub fn lock(&self, name: &str) -> Lock {
        Lock::new(self.inner.lock(name), self.inner.executor().clone())
    }

    /// Returns the read-write lock `name`: see [`bowline::Client::rw_lock`](crate::Client::rw_lock).
    pub fn rw_lock(&self, name: &str) -> RwLock {
        RwLock::new(self.inner.rw_lock(name), self.inner.executor().clone())
    }

    /// Returns the semaphore `name`: see [`bowline::Client::semaphore`](crate::Client::semaphore).
    pub fn semaphore(&self, name: &str, limit: u32) -> Semaphore {
        Semaphore::new(self.inner.semaphore(name, limit), self.inner.executor().clone())
    }

    /// Returns the count-down latch `name`: see [`bowline::Client::latch`](crate::Client::latch).
    pub fn latch(&self, name: &str) -> CountDownLatch {
        CountDownLatch::new(self.inner.latch(name), self.inner.executor().clone())
    }

    /// The identity of the client in Redis: see [`bowline::Client::id`](crate::Client::id).
    pub fn id(&self) -> Uuid {
        self.inner.id()
    }

    /// Problems found in the server's setup: see [`bowline::Client::warnings`](crate::Client::warnings).
    pub fn warnings(&self) -> Vec<Warning> {
        self.inner.warnings()
    }

    /// Counters of this client: see [`bowline::Client::stats`](crate::Client::stats).
    pub fn stats(&self) -> Stats {
        self.inner.stats()
    }

    /// Closes the client and all its clones: see [`bowline::Client::close`](crate::Client::close).
    ///
    /// # Errors
    /// Only [those of blocking](self#errors).
    pub fn close(&self) -> Result<()> {
        self.inner.executor().block_on(Box::pin(self.inner.close()))
    }

    /// Calls `work` with this client and then closes the client, even if `work` panics: see
    /// [`bowline::Client::scope`](crate::Client::scope). On a thread that may not block, the client is closed in the background.
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

/// Blocks this thread until `future` is done.
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
