//! What several test binaries share. Each of them uses a part.
#![allow(dead_code, unreachable_pub, unused_macros, unused_imports, missing_debug_implementations, missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

#[cfg(any(feature = "tokio", feature = "smol", feature = "async-std"))]
pub mod adapters;
pub mod bounded;
pub mod cluster;
#[cfg(any(feature = "tokio", feature = "smol", feature = "async-std"))]
pub mod cost;
#[cfg(any(feature = "tokio", feature = "smol", feature = "async-std"))]
pub mod counted;
#[cfg(any(feature = "tokio", feature = "smol", feature = "async-std"))]
pub mod env;
pub mod fake;
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
