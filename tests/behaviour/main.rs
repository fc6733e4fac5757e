//! The primitives against a real server and the embedded one, on every runtime, with futures and through the blocking
//! facade.
#![cfg(any(feature = "tokio", feature = "smol", feature = "async-std"))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests panic, and have clocks and threads of their own"
)]

use bowline_testkit as support;

#[cfg(all(feature = "blocking", feature = "tokio", feature = "async-std"))]
mod ask;
mod barrier;
mod blocking;
mod changes;
mod double_barrier;
mod drop_waiters;
mod election;
mod handle;
mod inspect;
mod lab;
mod latch;
mod limiter;
mod lock;
mod multi_lock;
mod names;
mod once;
mod redisson;
mod revoke;
mod rw_lock;
mod semaphore;
