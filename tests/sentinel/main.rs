//! A master that sentinels watch: real processes, and sentinels that say what they should not.
#![cfg(any(feature = "tokio", feature = "smol", feature = "async-std"))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests panic, and have clocks and threads of their own"
)]

use bowline_testkit as support;

#[cfg(feature = "blocking")]
mod blocking;
mod connecting;
mod disagreement;
mod failover;
mod fake;
mod scene;
