//! The lock against a real server and the embedded one, on every runtime.
#![cfg(any(feature = "tokio", feature = "smol", feature = "async-std"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods, missing_docs)]

#[path = "../support/mod.rs"]
mod support;

#[path = "suite.rs"]
mod suite;

// What only futures can do: be polled by hand, dropped half way, and run inside one another.
mod cancel;
mod cancel_others;
mod client_scope;
mod close_many;
mod cohort_left;
mod held;
mod identity;
mod left_alone;
mod many;
mod protect;
mod run;
mod scope;

use suite::{LONG, free_at_once, queued, waiter};
use support::polled::poll_once;
