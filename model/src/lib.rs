//! The scheme of bowline's `RedLock` as a model: 3 to 5 masters and 2 clients, of which [stateright] visits every state
//! within bounds.
//!
//! `docs/quorum.md` says what is modelled and what is not. A request that is never executed stands for one that was
//! lost, and for a master that is down, frozen or cut off.

mod client;
mod flaw;
pub mod history;
mod master;
mod queue;
mod rollout;
mod scheme;
mod state;
mod steps;

pub use flaw::Flaw;
pub use queue::{FIRST_COME, ONE_HOLDS, Queue, QueueFlaw, QueueState, QueueStep, SERVED};
pub use rollout::{ADDED, FIXED, FOUR_TO_FIVE, Order, REPLACED, Rollout, THREE_TO_FIVE};
pub use scheme::{Bounds, Losses, Scheme};
pub use state::State;
pub use steps::Step;

/// The property that at most one guard is valid.
pub const EXCLUSION: &str = "at most one guard is valid";
/// The property that each hold has a larger token than those that were granted before.
pub const ORDER: &str = "tokens grow from grant to grant";
/// The property that an acquisition gets a larger token than those of holds that were granted before it began.
pub const GROWTH: &str = "an acquisition gets a larger token than earlier holds";
/// The property of a resource that checks tokens.
pub const REGISTER: &str = "accepted writes grow, and no write of a valid guard is refused";
