//! Real clusters, and what happens to them.
#![cfg(feature = "tokio")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests panic, and have clocks and threads of their own"
)]

use bowline_testkit as support;

mod acknowledged;
mod changes;
mod connecting;
mod counts;
mod cut_off;
mod failover;
mod late;
mod log;
mod lone;
mod messages;
mod moved;
mod moving;
mod names;
mod runtimes;
mod scene;
mod slots;

/// Makes a `#[test]` of each `async fn(Env)`.
macro_rules! tests {
    ($($test:ident),+ $(,)?) => {
        $crate::support::env::on_runtime! { run, tokio, TokioMulti, $($test),+ }
    };
}

pub(crate) use tests;
