//! The read-write lock against a real server and the embedded one, on every runtime.
#![cfg(any(feature = "tokio", feature = "smol", feature = "async-std"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods, missing_docs)]

#[path = "../support/mod.rs"]
mod support;

#[path = "suite.rs"]
mod suite;

// What only futures can do: be dropped half way, and run inside one another.
mod cancel;
mod cohort;
mod scope;

use suite::{LONG, SPAN, free_at_once, reader, reads_after, writer};
