//! What every adapter promises, checked the same way for each of them: executors, connections, TLS.
#![cfg(any(feature = "tokio", feature = "smol", feature = "async-std"))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests panic, and have clocks and threads of their own"
)]

use bowline_testkit as support;

mod conformance;
mod connection;
mod credentials;
mod deployed;
mod executor;
#[cfg(feature = "redis-1")]
mod redis_1;
#[cfg(all(feature = "threads", feature = "smol"))]
mod threads;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "tls")]
mod tls_options;
