//! A master that sentinels watch: real processes, and sentinels that say what they should not.
#![cfg(any(feature = "tokio", feature = "smol", feature = "async-std"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods, missing_docs)]

#[path = "../support/mod.rs"]
mod support;

mod connecting;
mod disagreement;
mod failover;
mod fake;
mod scene;
