//! The feature `serde`: settings from files and the environment, and states, counters and tokens as data.
#![cfg(all(feature = "serde", feature = "tokio"))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests panic, and have clocks and threads of their own"
)]

mod config;
mod options;
mod refused;
mod states;
