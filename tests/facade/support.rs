//! What the suites need of `tests/support`, with rows of our own.

#[path = "../support/cost.rs"]
pub mod cost;
#[path = "../support/counted.rs"]
pub mod counted;
#[path = "../support/env.rs"]
pub mod env;
#[path = "../support/polled.rs"]
pub mod polled;
#[path = "../support/run.rs"]
pub mod run;
#[path = "../support/server.rs"]
pub mod server;
#[path = "../support/tracking.rs"]
pub mod tracking;

#[path = "rows.rs"]
pub mod rows;
