//! The primitives for code that is not async.
//!
//! Names, options and guarantees are those of the async API. [`Client`] and the handles of the primitives have the same
//! methods, which block the calling thread. The builders of an acquisition are the same types: call
//! [`.block()`](crate::Acquire::block) where async code would `.await`. Every call runs the async operation with
//! [`Executor::block_on`](crate::Executor::block_on), and both APIs can share one client.
//!
//! # Which threads may block
//! - A program without a runtime connects with `connect` (feature `blocking`). The client runs
//!   on the threads of smol's global executor, which all such clients share. Call `close` or `scope` before `main`
//!   returns: the executor is not shut down, and a hold whose guard is not dropped stays until its lease ends.
//! - A program with a runtime wraps its async client in [`Client::new`]. It blocks only on threads meant for that, such
//!   as those of `tokio::task::spawn_blocking`, `smol::unblock` or `async_std::task::spawn_blocking`. The runtime must
//!   be running: a call never returns if it depends on a current-thread runtime that no thread drives.
//!
//! # Errors
//! Every blocking call can return two errors in addition to those of its async counterpart:
//! - [`InvalidInput`](crate::ErrorKind::InvalidInput) on a thread that drives async tasks, where blocking could stop
//!   the runtime. The check is only as good as the runtime allows. smol recognises only the threads of its global
//!   executor. tokio reports such a thread by a panic, which bowline catches. The panic hook still runs, and a program
//!   built with `panic = "abort"` ends.
//! - [`Closed`](crate::ErrorKind::Closed) if the runtime is shut down.
//!
//! # Re-entrancy
//! Each thread is a [`Holder`](crate::Holder) of its own. A thread that acquires what it already holds gets another
//! guard of the same hold at once, as in Java. A thread that reads and then asks to write gets
//! [`WouldDeadlock`](crate::ErrorKind::WouldDeadlock). Semaphores are not re-entrant.
//!
//! A guard of the thread is not `Send`: on another thread, the next job of a thread pool could re-enter its hold. To
//! move a guard to another thread or out of a job, acquire it for an explicit holder:
//! `lock.lock().holder(&Holder::new())`. See [`ThisThread`] and [`AnyThread`].
//!
//! # Scoped use
//! `run` of a builder acquires, works and releases. [`Client::scope`] works and closes the client. Both clean up even
//! if the work fails or panics.
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

mod acquire;
mod barrier;
mod changes;
mod client;
mod double_barrier;
mod election;
mod guard;
mod latch;
mod limiter;
mod lock;
mod marker;
mod multi_lock;
mod names;
mod once;
mod red_lock;
mod redisson;
mod redisson_permit_semaphore;
mod redisson_semaphore;
mod rw_lock;
mod semaphore;
mod thread;

pub use acquire::{Acquire, TryAcquire};
pub use barrier::Barrier;
pub use changes::Changes;
pub use client::Client;
#[cfg(feature = "blocking")]
pub use client::{connect, connect_with};
pub use double_barrier::DoubleBarrier;
pub use election::{Election, Leadership};
pub use guard::{
    Guard, LockGuard, MultiGuard, Permit, ReadGuard, RedissonFencedGuard, RedissonGuard, RedissonPermitGuard,
    UpgradableGuard, WriteGuard,
};
pub use latch::CountDownLatch;
pub use limiter::RateLimiter;
pub use lock::Lock;
pub use marker::{AnyThread, ThisThread};
pub use multi_lock::MultiLock;
pub use names::Names;
pub use once::Once;
pub use red_lock::{RedLock, RedLockBuilder};
pub use redisson::{Redisson, RedissonCountDownLatch, RedissonFencedLock, RedissonLock};
pub use redisson_permit_semaphore::RedissonPermitSemaphore;
pub use redisson_semaphore::{RedissonPermits, RedissonSemaphore};
pub use rw_lock::{RwLock, Upgrade};
pub use semaphore::Semaphore;

/// The builders are the same in both APIs: call [`block`](LatchWait::block) or `.await`.
#[doc(no_inline)]
pub use crate::{BarrierWait, Campaign, Deadlocks, Enter, Inside, LatchWait, Leave, UntilReady};
