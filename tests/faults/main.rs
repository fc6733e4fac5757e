//! The lock when things go wrong: one file per kind of fault, each test on every runtime.
#![cfg(any(feature = "tokio", feature = "smol", feature = "async-std"))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests panic, and have clocks and threads of their own"
)]
#![allow(missing_docs, missing_debug_implementations, unreachable_pub, reason = "a test binary has no public API")]

use bowline_testkit as support;

mod acknowledged;
mod acquire;
mod background;
mod barrier;
mod bounds;
mod change;
mod changes;
mod cohort;
mod double_barrier;
mod drain;
mod election;
mod failover;
mod faulty;
mod followers;
mod gone;
mod goodbye;
mod handle;
mod label;
mod latch;
mod late;
mod lease;
mod limiter;
mod messages;
mod names;
mod once;
mod others;
mod parts;
#[cfg(feature = "tokio")]
mod processes;
#[cfg(feature = "tokio")]
mod programs;
mod redisson;
mod refusals;
mod release;
mod rights;
mod run;
mod scene;
mod server;
mod sockets;
mod suspended;
