//! Real clusters, and what happens to them.
#![cfg(feature = "tokio")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods, missing_docs)]

#[path = "../support/mod.rs"]
mod support;

mod connecting;
mod counts;
mod failover;
mod log;
mod scene;
mod slots;

/// Makes a `#[test]` of each `async fn(Env)`.
macro_rules! tests {
    ($($test:ident),+ $(,)?) => {
        $crate::support::env::on_runtime! { run, tokio, TokioMulti, $($test),+ }
    };
}

pub(crate) use tests;
