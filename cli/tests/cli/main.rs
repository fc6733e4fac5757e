//! The program, as a shell or cron runs it: real processes, real signals, a real server.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests panic, and have clocks and threads of their own"
)]

mod codes;
mod crowd;
mod health;
mod look;
mod lost;
mod once;
mod packages;
mod program;
mod servers;
mod signals;
mod terminal;
mod tls;
mod watch;
