//! `RedLock` over several embedded servers on every runtime, and over real ones on tokio; also from plain threads.
#![cfg(all(feature = "tokio", feature = "embedded"))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests panic, and have clocks and threads of their own"
)]

use bowline_testkit as support;

mod blocking;
mod cancel;
mod changing;
mod claims;
mod clocks;
mod counts;
mod elections;
mod faults;
mod gate;
mod health;
mod held;
mod history;
mod input;
mod late;
mod masters;
mod processes;
mod refusals;
mod slow;
mod turns;
mod versions;
mod votes;
mod young;

/// Runs each test over embedded servers on every runtime, and over real ones on tokio.
macro_rules! on_masters {
    ($($test:ident),+ $(,)?) => {
        crate::support::env::on_the_embedded_server! { $($test),+ }
        crate::support::env::on_runtime! { run, tokio_multi, TokioMulti, $($test),+ }
    };
}
use on_masters;
