//! The suites of the primitives once more, through the blocking facade: what they say of futures is true of calls on
//! threads of their own. What a suite leaves out is in its own root (`tests/lock/main.rs`, ...): what only futures can do.
#![cfg(any(feature = "tokio", feature = "smol"))]
#![allow(dead_code, unused_imports, unreachable_pub, missing_docs, missing_debug_implementations)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

// In this binary `bowline` is this binary: the names below in place of the async API's own, and everything else as it
// is. So the suites are the same files, and say `bowline::Lock` as ever.
extern crate bowline as real;
extern crate self as bowline;

pub use client::Client;
pub use guard::{LockGuard, Permit, ReadGuard, Upgrade, WriteGuard};
pub use primitives::{CountDownLatch, Lock, RwLock, Semaphore};
pub use real::*;

mod acquire;
mod client;
mod guard;
mod primitives;
mod support;
mod thread;

#[path = "../latch/suite.rs"]
mod latch;
#[path = "../lock/suite.rs"]
mod lock;
#[path = "../rw_lock/suite.rs"]
mod rw_lock;
#[path = "../semaphore/suite.rs"]
mod semaphore;
