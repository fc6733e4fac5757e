//! The blocking facade where it differs from the async API: threads as holders, drops that wait, and the places it runs in.
//! Its behaviour otherwise: `tests/facade`.
#![cfg(all(feature = "blocking", feature = "tokio", feature = "async-std"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods, missing_docs)]

mod support;

#[path = "blocking/async_threads.rs"]
mod async_threads;
#[path = "blocking/lab.rs"]
mod lab;
#[path = "blocking/latch.rs"]
mod latch;
#[path = "blocking/lock.rs"]
mod lock;
#[path = "blocking/rw_lock.rs"]
mod rw_lock;
#[path = "blocking/semaphore.rs"]
mod semaphore;
