//! The blocking facade where it differs from the async API: threads as holders, drops that wait, and the places it runs in.
//! Its behaviour otherwise: `tests/facade`.
#![cfg(all(feature = "blocking", feature = "tokio", feature = "async-std"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods, missing_docs)]

#[path = "../support/mod.rs"]
mod support;

mod async_threads;
mod lab;
mod latch;
mod lock;
mod rw_lock;
mod semaphore;
