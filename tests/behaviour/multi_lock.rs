//! What is true of several primitives that are acquired together, with futures and through the blocking facade (`lab`).

mod all_or_none;
mod guard;
mod input;
mod order;

// Tests that need futures: dropped half-way, or of clients with different clocks.
mod cancel;
mod run;

use std::time::Duration;

use crate::support::env::Env as AsyncEnv;

pub(crate) const LONG: Duration = Duration::from_secs(20);

/// Nothing is held or queued, without waiting for a lease to expire.
pub(crate) async fn nothing_is_left(env: &AsyncEnv) {
    env.eventually("nothing is left", async || env.keys().is_empty()).await;
}
