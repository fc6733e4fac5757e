//! Runs bowline on threads of its own, without any runtime (feature `threads`).
//!
//! It has no sockets. A client connects to the embedded server, over the application's own
//! [`Connection`](crate::Connection), or to a URL with the sockets of a runtime:
//!
//! ```no_run
//! # #[cfg(feature = "smol")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//!
//! use bowline::threads::Threads;
//! use bowline::{Client, Config, blocking};
//!
//! let (threads, config) = (Arc::new(Threads::new(1)?), Config::default());
//! let client = smol::block_on(async {
//!     let connection = bowline::smol::open(threads.clone(), "redis://127.0.0.1/", &config).await?;
//!     Client::connect(threads, Arc::new(connection), config).await
//! })?;
//! let client = blocking::Client::new(client);
//! let guard = client.lock("orders:42").lock().block()?;
//! println!("writing with token {}", guard.token());
//! guard.release()?;
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "smol"))]
//! # fn main() {}
//! ```
//!
//! [`blocking::connect`](crate::blocking) runs on smol. With the same sockets, this executor has one thread more, and
//! starts no faster.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fmt, io};

use futures::future::{BoxFuture, Either, select};

use self::pool::Pool;
use self::sleep::Sleep;
use super::{Executor, clock, must_not_block};
use crate::error::{Error, ErrorKind, Result};
use crate::on_drop::OnDrop;
use crate::park;

mod pool;
mod sleep;
mod task;
#[cfg(test)]
mod tests;
mod timers;

/// An executor of one thread for timers and a pool of threads for tasks. Cheap to clone.
///
/// The threads end after [`shut_down`](Self::shut_down), or when the last clone is dropped. A client and its handles
/// have clones, also after [`close`](crate::Client::close), and so has an embedded server to which the client connects.
///
/// A task must not block, because its thread runs other tasks as well. A task that panics is dropped; the panic hook
/// reports the panic, and the thread goes on.
#[derive(Clone)]
pub struct Threads {
    /// Shuts the pool down when the last clone is dropped. Threads and tasks refer to the pool itself.
    pool: Arc<OnDrop<Arc<Pool>>>,
}

impl Threads {
    /// Starts a thread for timers and `workers` threads for tasks, at least one. One is enough for a client, whose
    /// tasks wait most of the time.
    ///
    /// # Errors
    /// The system could not start a thread. Those that had been started end.
    pub fn new(workers: usize) -> io::Result<Self> {
        let pool = Arc::new(Pool::default());
        let threads = Self { pool: Arc::new(OnDrop(Arc::clone(&pool), |pool| pool.shut_down())) };
        pool.start(workers.max(1))?;
        Ok(threads)
    }

    /// Drops all tasks and ends the threads. A task that is being polled is dropped after the poll. From now on, new
    /// tasks are dropped at once, sleeps end early, and [`block_on`](Executor::block_on) fails. Does not wait for the
    /// threads.
    pub fn shut_down(&self) {
        self.pool.0.shut_down();
    }
}

impl Executor for Threads {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.pool.0.spawn(task);
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(Sleep::new(Arc::clone(&self.pool.0), duration))
    }

    fn now(&self) -> Instant {
        clock::now()
    }

    fn block_on(&self, future: BoxFuture<'_, ()>) -> Result<()> {
        if pool::is_worker() {
            return Err(must_not_block("a thread of the application"));
        }
        // If both are done, the future is.
        match park::block_on(select(future, pin!(self.pool.0.until_shut_down()))) {
            Either::Left(((), _)) => Ok(()),
            Either::Right(_) => Err(Error::new(ErrorKind::Closed, "block_on")),
        }
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Threads").field("is_shut_down", &self.pool.0.is_shut_down()).finish_non_exhaustive()
    }
}
