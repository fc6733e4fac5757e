//! All that goes over the wire, and nothing else: keys, tickets, scripts with their arguments, replies and messages.
//!
//! Each kind of resource has a folder with its Lua scripts, typed calls and typed replies; [`registry`] lists them.

#[cfg(test)]
mod arity;
pub(crate) mod attempt_id;
pub(crate) mod barrier;
mod call;
pub(crate) mod change;
mod client;
pub(crate) mod copy;
pub(crate) mod dispatch;
mod drop_waiters;
pub(crate) mod election;
mod facts;
mod failure;
mod fields;
pub(crate) mod key;
pub(crate) mod kind;
pub(crate) mod latch;
mod leased;
pub(crate) mod limits;
pub(crate) mod message;
pub(crate) mod mutex;
pub(crate) mod names;
pub(crate) mod once;
pub(crate) mod permits;
pub(crate) mod rate;
pub(crate) mod redisson;
mod registry;
mod renewal;
pub(crate) mod renewed;
pub(crate) mod reply;
pub(crate) mod resource;
pub(crate) mod script;
pub(crate) mod seen;
pub(crate) mod shared_counter;
pub(crate) mod slot;
pub(crate) mod ticket;
pub(crate) mod timed_permits;
pub(crate) mod token;
pub(crate) mod vote;
#[cfg(feature = "_wire")]
pub mod wire;
mod wrong_type;

pub(crate) use script::CALLS;
pub use script::Script;
