//! Every script by table, on a real server: every reply, who is refused, what a second copy does, and after every
//! call that each key has a TTL, that list and zset hold the same tickets, and that a lock has one holder.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests panic, and have clocks and threads of their own"
)]
#![allow(clippy::enum_variant_names, reason = "replies are named as the scripts name them")]
#![allow(missing_docs, missing_debug_implementations, unreachable_pub, reason = "a test binary has no public API")]

use bowline_testkit as support;

mod acquire;
mod ask;
mod ask_ahead;
mod barrier;
mod bounds;
mod cancel;
mod claim;
mod client;
mod cluster;
mod drop_waiters;
mod duplicates;
mod election;
mod half_state;
mod hand_over;
mod heartbeat;
mod lab;
mod label;
mod latch;
mod names;
mod once;
mod operators;
mod permits;
mod queue;
mod rate;
mod redisson;
mod refusals;
mod release;
mod renew;
mod replica;
mod resume;
mod retained;
mod sharded;
mod shared_latch;
mod shared_permits;
mod timed_permits;
mod token;
mod vote;
