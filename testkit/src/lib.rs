//! What the tests of bowline share: real servers and deployments, runtimes, clients that count, connections that
//! misbehave.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests panic, and have clocks and threads of their own"
)]
#![allow(missing_docs, missing_debug_implementations, reason = "the names of what tests use say what it is")]

#[cfg(any(feature = "tokio", feature = "smol", feature = "async-std"))]
pub mod adapters;
pub mod bounded;
pub mod certificates;
pub mod closed;
pub mod cluster;
#[cfg(any(feature = "tokio", feature = "smol", feature = "async-std"))]
pub mod counted;
#[cfg(any(feature = "tokio", feature = "smol", feature = "async-std"))]
pub mod deployment;
pub mod dump;
#[cfg(any(feature = "tokio", feature = "smol", feature = "async-std"))]
pub mod env;
pub mod fake;
pub mod memory;
pub mod operations;
pub mod polled;
pub mod proxy;
pub mod request;
#[cfg(any(feature = "tokio", feature = "smol", feature = "async-std"))]
pub mod rows;
#[cfg(any(feature = "tokio", feature = "smol", feature = "async-std"))]
pub mod run;
pub mod sentinels;
pub mod server;
#[cfg(any(feature = "tokio", feature = "smol", feature = "async-std"))]
pub mod stepped;
pub mod tracking;
pub mod watched;
