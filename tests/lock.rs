//! The lock against a real server and the embedded one, on every runtime.
#![cfg(any(feature = "tokio", feature = "smol", feature = "async-std"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods, missing_docs)]

mod support;

#[path = "lock/suite.rs"]
mod suite;

// What only futures can do: be polled by hand, dropped half way, and run inside one another.
#[path = "lock/cancel.rs"]
mod cancel;
#[path = "lock/cancel_others.rs"]
mod cancel_others;
#[path = "lock/client_scope.rs"]
mod client_scope;
#[path = "lock/close_many.rs"]
mod close_many;
#[path = "lock/held.rs"]
mod held;
#[path = "lock/identity.rs"]
mod identity;
#[path = "lock/left_alone.rs"]
mod left_alone;
#[path = "lock/line_left.rs"]
mod line_left;
#[path = "lock/many.rs"]
mod many;
#[path = "lock/protect.rs"]
mod protect;
#[path = "lock/run.rs"]
mod run;
#[path = "lock/scope.rs"]
mod scope;

use suite::{LONG, free_at_once, queued, waiter};
use support::polled::poll_once;
